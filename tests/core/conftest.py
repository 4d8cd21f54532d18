"""Records made by hand for the core ring."""

from collections.abc import Callable
from typing import Any

import pytest

from playground.core.decoding import GREEDY, Decoding
from playground.core.events import Finished, Prefilled, StageRecord, Started, Stepped
from playground.core.request import ModelFacts, Request
from playground.core.run import Run, fold
from playground.core.tokens import Candidate, Token

FACTS = ModelFacts("tests/none", "abc", "cpu", "float32", 49152, 8192, kv_bytes_per_token=46080)


def make_step(
    lane: int, step: int, id: int, end: float, start: float | None = None, **changes: Any
) -> Stepped:
    token = Token(id, f" {id}", "20")
    values: dict[str, Any] = {
        "run": "r", "lane": lane, "step": step, "position": 4 + step, "token": token,
        "text": token.text, "raw_rank": 2, "raw_logprob": -1.0, "processed_probability": 0.75,
        "draw": 0.5, "origin": "drawn",
        "candidates": (
            Candidate(token, -1.0, 0.75), Candidate(Token(9, "<b>", "3c", True), -3.0, 0.0, "top_p"),
        ),
        "logsumexp": 20.0, "raw_entropy_bits": 2.0, "processed_entropy_bits": 0.8, "kept_count": 3,
        "kept_mass": 0.9, "stages": (StageRecord("top_p", 3, 0.9),),
        "start_seconds": end - 0.1 if start is None else start, "end_seconds": end,
        "kv_tokens": 4 + step, "kv_used_bytes": 46080 * (4 + step), "kv_allocated_bytes": 46080 * (4 + step),
        "kv_predicted_bytes": 46080 * (4 + step), "positions_computed": 1, "positions_reused": 3 + step,
    }  # fmt: skip
    return Stepped(**(values | changes))


def make_run(*lanes: list[int], decodings: tuple[Decoding, ...] | None = None, finish: bool = True) -> Run:
    """A run whose lanes chose these ids; prefill 2.0 s, then a token every 0.1 s."""
    request = Request("a b c d", decodings or (GREEDY,) * len(lanes), prompt_ids=(1, 2, 3, 4), run="r")
    prompt = tuple(Token(i, f" {i}") for i in (1, 2, 3, 4))
    events: list[Any] = [
        Started("r", request, FACTS, prompt, (True,) * 4, load_seconds=0.5),
        Prefilled("r", 2000, 10, 0.0, 2.0, 4, 46080 * 4, 46080 * 4, kv_predicted_bytes=46080 * 4),
    ]
    for lane, ids in enumerate(lanes):
        events += [make_step(lane, n, id, 2.0 + n / 10) for n, id in enumerate(ids)]
    if finish:
        events += [
            Finished("r", lane, "max_new_tokens", "".join(f" {id}" for id in ids), 9.0)
            for lane, ids in enumerate(lanes)
        ]
    return fold(events)


@pytest.fixture
def run_of() -> Callable[..., Run]:
    return make_run


@pytest.fixture
def step_of() -> Callable[..., Stepped]:
    return make_step
