"""Events that were never computed, for the stage alone, and giving packets of them to its page."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playground.core.codec import encode
from playground.core.decoding import Decoding
from playground.core.events import Event, Finished, Prefilled, StageRecord, Started, Stepped
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Candidate, Token

ROOT = Path(__file__).parents[2]
EACH = 46_080
FACTS = ModelFacts(
    "tests/made", None, "cpu", "float32", 49_152, 8_192, EACH, (30, 3, 64, 4), 9, 538_000_000, 24 * 2**30
)
NASTY = "<b>x</b><img src=x onerror=window.broken=1></script><think>$\\frac{1}{2}$ **bold**"


def token(text: str, id: int = 100, special: bool = False) -> Token:
    return Token(id, text, text.encode().hex(), special)


def piece(hex_bytes: str, id: int) -> Token:
    return Token(id, bytes.fromhex(hex_bytes).decode("utf-8", "replace"), hex_bytes)


def started(
    *prompt: Token, run: str = "r", own: tuple[bool, ...] = (), chat: bool = False, **more: Any
) -> Started:
    lanes = more.pop("lanes", (Decoding(temperature=0.7, top_p=0.9, seed=7, max_new_tokens=5000),))
    prompt = prompt or (token("What"), token(" is"), token(" gravity"), token("?"))
    request = Request("What is gravity?", lanes, chat=chat, run=run)
    return Started(run, request, FACTS, prompt, own or (True,) * len(prompt), **more)


def prefilled(tokens: int = 4, run: str = "r") -> Prefilled:
    return Prefilled(
        run, tokens, 0, 0.0, 0.1, tokens, tokens * EACH, tokens * EACH, kv_predicted_bytes=tokens * EACH
    )  # fmt: skip


def step(
    i: int, chosen: Token, text: str | None = None, lane: int = 0, run: str = "r", **more: Any
) -> Stepped:
    raw = more.pop("raw", 0.5)
    candidates = (
        Candidate(chosen, math.log(raw), 0.75),
        Candidate(Token(3, "os", "6f73"), math.log(0.2), 0.25),
        Candidate(Token(4, " os", "206f73"), math.log(0.05), 0.0, "top_p"),
        Candidate(Token(2, "<|end|>", "", True), math.log(0.04), 0.0, "top_p"),
        Candidate(Token(5, NASTY), math.log(0.03), 0.0, "top_p"),
    )
    values: dict[str, Any] = {
        "run": run, "lane": lane, "step": i, "position": 4 + i, "token": chosen,
        "text": chosen.text if text is None else text, "raw_rank": 1, "raw_logprob": math.log(raw),
        "processed_probability": 0.75, "draw": 0.31, "origin": "drawn", "candidates": candidates,
        "logsumexp": 20.0, "raw_entropy_bits": 1.4, "processed_entropy_bits": 0.8,
        "kept_count": 2, "kept_mass": 0.7,
        "stages": (StageRecord("temperature", 49_152, 1.0), StageRecord("top_p", 2, 0.7)),
        "start_seconds": 0.1 + 0.03 * i, "end_seconds": 0.13 + 0.03 * i, "kv_tokens": 4 + i,
        "kv_used_bytes": (4 + i) * EACH, "kv_allocated_bytes": (4 + i) * EACH, "positions_computed": 1,
        "positions_reused": 3 + i, "kv_predicted_bytes": (4 + i) * EACH,
    }  # fmt: skip
    return Stepped(**{**values, **more})


def finished(
    text: str, reason: Any = "max_new_tokens", run: str = "r", lane: int = 0, **more: Any
) -> Finished:
    return Finished(run, lane, reason, text, 1.0, **more)


def whole_run(words: list[str], **more: Any) -> list[Event]:
    steps = [step(i, token(word, 100 + i % 50), raw=0.5 if i % 7 else 0.02) for i, word in enumerate(words)]
    return [started(**more), prefilled(), *steps, finished("".join(words))]


def packet(
    events: Sequence[Event], first: int = 0, run: str = "r", seq: int = 0, **side: Any
) -> dict[str, Any]:
    return {"run": run, "seq": seq, "first": first, "events": [encode(e) for e in events], **side}


def send(page: Any, *packets: dict[str, Any]) -> None:
    """Give the packets to the stage and wait until they are painted."""
    page.evaluate("packets => packets.forEach((p) => firstTokenStage.packet(p))", list(packets))
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
