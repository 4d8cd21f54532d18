"""Prefill and decode of a run, apart: the time of each, its arithmetic, and what it waited for.

Reads a folded run beside the shape of its model and the device's rates; without them the times stand
alone. A step's time holds the choice of the token too. Knows no engine.
"""

from dataclasses import dataclass
from typing import Literal

from playground.core.cost import (
    Cost,
    Device,
    Shape,
    Verdict,
    chunked_cost,
    decode_cost,
    prefill_cost,
    verdict,
)
from playground.core.events import Prefilling, Stepped
from playground.core.run import Lane, Run


@dataclass(frozen=True, slots=True)
class Phase:
    """One of the two phases of a run.

    `seconds` are all of it, measured; `tokens` were read in a prefill, or made by decode steps in one lane.
    `cost` and `verdict` are of the whole prefill, or of the decode step that took the median time, with
    `forward_seconds`; None without a shape, or without a device.
    """

    name: Literal["prefill", "decode"]
    seconds: float
    tokens: int
    forward_seconds: float
    cost: Cost | None
    verdict: Verdict | None


@dataclass(frozen=True, slots=True)
class Phases:
    """The phases that a run has had so far. The shares are of both phases' seconds and add up to 1."""

    prefill: Phase | None
    decode: Phase | None

    @property
    def prefill_share(self) -> float | None:
        """The prefill's share of the time; None before there is any."""
        seconds = [phase.seconds if phase else 0.0 for phase in (self.prefill, self.decode)]
        return seconds[0] / sum(seconds) if sum(seconds) > 0 else None


def phases(run: Run, shape: Shape | None = None, device: Device | None = None) -> Phases:
    """The phases of `run`; decode is that of its longest lane, whose steps all lanes shared."""
    longest = max(run.lanes, key=lambda lane: len(lane.steps), default=None)
    decode = _decode(run, longest, shape, device) if longest and len(longest.steps) > 1 else None
    return Phases(_prefill(run, shape, device), decode)


def _prefill(run: Run, shape: Shape | None, device: Device | None) -> Phase | None:
    event = run.prefilled
    if event is None:
        return None
    seconds, cost = event.end_seconds - event.start_seconds, None
    if shape is not None and event.tokens_computed:
        ends = [e.done_tokens for e in run.events if isinstance(e, Prefilling)]
        whole = event.tokens_reused + event.tokens_computed
        cost = chunked_cost(shape, ends if ends and ends[-1] == whole else [whole], event.tokens_reused)
    return Phase("prefill", seconds, event.tokens_computed, seconds, cost, _verdict(cost, seconds, device))


def _decode(run: Run, lane: Lane, shape: Shape | None, device: Device | None) -> Phase:
    steps = sorted(lane.steps[1:], key=_seconds)
    middle = steps[(len(steps) - 1) // 2]
    cost = _step_cost(shape, middle, _rows(run, middle.step)) if shape is not None else None
    return Phase(
        "decode", sum(map(_seconds, steps)), len(steps), _seconds(middle), cost,
        _verdict(cost, _seconds(middle), device),
    )  # fmt: skip


def _step_cost(shape: Shape, step: Stepped, lanes: int) -> Cost:
    """A run without a cache reads the whole text in every step."""
    if step.positions_computed > 1:
        return prefill_cost(shape, step.positions_computed, step.positions_reused, lanes)
    return decode_cost(shape, step.positions_computed + step.positions_reused, lanes)


def _rows(run: Run, step: int) -> int:
    return sum(any(event.step == step for event in lane.steps) for lane in run.lanes)


def _seconds(step: Stepped) -> float:
    return step.end_seconds - step.start_seconds


def _verdict(cost: Cost | None, seconds: float, device: Device | None) -> Verdict | None:
    return verdict(cost, seconds, device) if cost is not None and device is not None and seconds > 0 else None
