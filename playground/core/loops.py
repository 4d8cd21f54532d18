"""Where an answer goes round in a circle: the same tokens again and again.

A loop is a stretch in which the same 1 to `PERIOD_LIMIT` tokens stand at least `TIMES` times in a row and that is at
least `LENGTH` tokens long, so that “ha ha ha” is none. The page finds them by the same rule (assets/stage/loops.js).
Knows no text: tokens are ids.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from playground.core.run import Lane

TIMES = 3
LENGTH = 12
PERIOD_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Loop:
    """`length` tokens from `first` on (0-based) repeat with `period`, the first time counted."""

    first: int
    period: int
    length: int

    @property
    def times(self) -> float:
        """How often the same tokens stand there; the last time may be incomplete."""
        return self.length / self.period


def loops(ids: Sequence[int]) -> tuple[Loop, ...]:
    """The loops of `ids` in order, none inside another; of several periods the one that begins first, then the
    shortest."""
    found = sorted(
        (
            stretch
            for period in range(1, min(PERIOD_LIMIT, len(ids) // TIMES) + 1)
            for stretch in _of(ids, period)
        ),
        key=lambda loop: (loop.first, loop.period),
    )
    kept: list[Loop] = []
    for loop in found:
        if not kept or loop.first >= kept[-1].first + kept[-1].length:
            kept.append(loop)
    return tuple(kept)


def _of(ids: Sequence[int], period: int) -> list[Loop]:
    """The stretches that repeat with `period`."""
    found, run = [], 0
    for i in range(period, len(ids) + 1):
        if i < len(ids) and ids[i] == ids[i - period]:
            run += 1
            continue
        if run + period >= max(TIMES * period, LENGTH):
            found.append(Loop(i - run - period, period, run + period))
        run = 0
    return found


def collapse(lane: Lane, loop: Loop) -> tuple[float | None, float]:
    """Mean raw entropy in bits before the loop (None where nothing stands there), and from its second time on."""
    bits = [step.raw_entropy_bits for step in lane.steps]
    before, within = bits[: loop.first], bits[loop.first + loop.period : loop.first + loop.length]
    return (sum(before) / len(before) if before else None), sum(within) / len(within)
