"""What First Token costs on the way to a server: a llama.cpp server asked through it and directly, in turn.

    python -m tests.remote_overhead [ROUNDS]

Both ask for the same greedy tokens with the same 20 logprobs, as streams, from the first token on. On a quiet
machine only. The last line is JSON; `ratio` is the median of the rounds' ratios and should be 0.9 or more.
"""

import json
import socket
import sys
from dataclasses import replace
from statistics import median
from time import perf_counter
from typing import Any

import httpx

from playground.backends.remote.backend import RemoteBackend, connect
from playground.backends.remote.llamacpp import WINDOW_TOKENS, sampling
from playground.core.control import Control
from playground.core.decoding import GREEDY
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.wheel import original
from tests.llama_server import running

TOKENS, TOP_N, THREADS = 128, 20, 2
PROMPT = "Write a long story about the sea."
DECODING = replace(GREEDY, max_new_tokens=TOKENS)


def direct(url: str, ids: list[int]) -> float:
    """Tokens a second of the plain stream, each line read as JSON."""
    body: dict[str, Any] = {
        "prompt": ids, "stream": True, "n_predict": TOKENS, "n_probs": TOP_N, "cache_prompt": True,
        "return_tokens": True, **sampling(DECODING, WINDOW_TOKENS),
    }  # fmt: skip
    with httpx.stream("POST", f"{url}/completion", json=body, timeout=60) as response:
        times = [
            perf_counter()
            for line in response.iter_lines()
            if line.startswith("data:") and json.loads(line[5:]).get("completion_probabilities")
        ]
    return (len(times) - 1) / (times[-1] - times[0])


def through(backend: RemoteBackend) -> float:
    """Tokens a second of the same run through First Token, every event made and folded."""
    run = fold(backend.stream(Request(PROMPT, (DECODING,), top_n=TOP_N), Control()))
    steps = run.lanes[0].steps
    return (len(steps) - 1) / (steps[-1].end_seconds - steps[0].end_seconds)


def main(rounds: int = 5) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with running(original(lambda progress: None), port, threads=THREADS) as url:
        backend = connect(url)
        tokens, _ = backend.tokenize(PROMPT, chat=True, system=None)
        ids = [token.id for token in tokens]
        direct(url, ids), through(backend)  # both warm
        pairs = [(direct(url, ids), through(backend)) for _ in range(rounds)]
    found = {
        "direct": round(median(a for a, _ in pairs), 1),
        "through": round(median(b for _, b in pairs), 1),
        "ratio": round(median(b / a for a, b in pairs), 3),
        "rounds": rounds, "tokens": TOKENS, "top_n": TOP_N,
    }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
