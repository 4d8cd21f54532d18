"""How far a run could go on: tokens until its context is full, tokens until memory is, at this pace.

Arithmetic on a folded run, the cache's shape and a number of free bytes; knows no device.
"""

from statistics import median
from typing import Literal

from playground.core.experiment import Forecast
from playground.core.kv import CacheSpec
from playground.core.run import Lane, Run

TOKENS_LIMIT = 10**9
"""As far as is looked ahead; what fits beyond fits for ever."""
_PACE_STEPS = 32


def forecast(run: Run, spec: CacheSpec | None, free_bytes: int | None) -> Forecast:
    """From the longest lane of `run`; all lanes that still run (or ran to its end) grow alike."""
    lane = max(run.lanes, key=lambda lane: len(lane.steps), default=None)
    held = _held(run, lane)
    lanes = max(1, sum(len(other.steps) == len(lane.steps) for other in run.lanes)) if lane else 1
    context = run.started.model.context if run.started else None
    until_context = max(0, context - _written(run, lane)) if context is not None else None
    until_memory = tokens_that_fit(spec, held, lanes, free_bytes)
    pace = _pace_seconds(lane)
    return Forecast(
        tokens_now=held,
        lanes=lanes,
        context_tokens=context,
        free_bytes=free_bytes,
        bytes_next_token=_growth(spec, held, 1, lanes) if spec is not None else None,
        tokens_until_context=until_context,
        tokens_until_memory=until_memory,
        seconds_until_context=_seconds(until_context, pace),
        seconds_until_memory=_seconds(until_memory, pace),
        limit=_first(until_context, until_memory),
    )


def tokens_that_fit(
    spec: CacheSpec | None, held_tokens: int, lanes: int, free_bytes: int | None
) -> int | None:
    """More tokens a lane whose keys and values fit `free_bytes`; None where unknown, or where all do."""
    if spec is None or free_bytes is None or _growth(spec, held_tokens, TOKENS_LIMIT, lanes) <= free_bytes:
        return None
    low, high = 0, TOKENS_LIMIT
    while high - low > 1:
        middle = (low + high) // 2
        fits = _growth(spec, held_tokens, middle, lanes) <= free_bytes
        low, high = (middle, high) if fits else (low, middle)
    return low


def _growth(spec: CacheSpec, held: int, more: int, lanes: int) -> int:
    return spec.used_bytes(held + more, lanes) - spec.used_bytes(held, lanes)


def _held(run: Run, lane: Lane | None) -> int:
    if lane is not None and lane.steps:
        return lane.steps[-1].kv_tokens
    return run.prefilled.kv_tokens if run.prefilled else 0


def _written(run: Run, lane: Lane | None) -> int:
    """Prompt and answer together; the newest token is not in the cache yet."""
    return lane.steps[-1].position + 1 if lane is not None and lane.steps else len(run.prompt_ids)


def _pace_seconds(lane: Lane | None) -> float | None:
    times = [step.end_seconds - step.start_seconds for step in lane.steps[1:]] if lane else []
    return median(times[-_PACE_STEPS:]) if times else None


def _seconds(tokens: int | None, pace: float | None) -> float | None:
    return tokens * pace if tokens is not None and pace is not None else None


def _first(context: int | None, memory: int | None) -> Literal["context", "memory"] | None:
    if context is None and memory is None:
        return None
    return "memory" if context is None or (memory is not None and memory < context) else "context"
