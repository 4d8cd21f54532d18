"""The places of a curve: which are asked for, which can be measured at all, in what order, why others are missing.

Knows a trial and no particular measurement.
"""

from collections.abc import Callable, Iterator, Sequence
from time import monotonic

from playground.core.decoding import InvalidSetting, require_whole
from playground.core.experiment import Absent, Missing, Progressed, Timed
from playground.engine.trial import Stopped, Trial, rounds

PLACES_LIMIT = 64
COUNT_LIMIT = 10**9
"""Of tokens and lanes: what is beyond a model's context or the memory is named as missing, not refused."""


def counts(name: str, values: object) -> tuple[int, ...]:
    """`values` as the whole numbers from 1 that they must be; raises `InvalidSetting`."""
    if not isinstance(values, tuple | list) or not 1 <= len(values) <= PLACES_LIMIT:
        raise InvalidSetting(f"{name} must be a list of 1 to {PLACES_LIMIT} whole numbers.")
    for value in values:
        count(f"each of {name}", value)
    return tuple(values)


def count(name: str, value: int, limit: int = COUNT_LIMIT) -> int:
    """`value`, which must be a whole number from 1 to `limit`; raises `InvalidSetting`."""
    require_whole(name, value, 1, limit)
    return value


class Places:
    """The places of a curve: which can be, what was measured at each, and why the others are missing."""

    def __init__(
        self,
        trial: Trial,
        wanted: Sequence[int],
        *,
        ahead: int = 0,
        rows_of: Callable[[int], tuple[int, int]] | None = None,
    ) -> None:
        self._trial, self._wanted = trial, sorted(set(wanted))
        self._extent = rows_of or (lambda n: (n + ahead, 1))
        self._times: dict[int, list[float]] = {n: [] for n in self._wanted}
        self._missing: dict[int, Missing] = {}

    def measure(self, once: Callable[[int], list[float]], repeats: int) -> Iterator[Progressed]:
        """Visit every place `repeats` times; a place that would pass the limit is left out, a stop ends all."""
        for n in self._wanted:
            tokens, rows = self._extent(n)
            if tokens > self._trial.context:
                self._missing[n] = "context"
            elif not self._trial.has_room(tokens, rows):
                self._missing[n] = "memory"
        plan = rounds([n for n in self._wanted if n not in self._missing], repeats)
        took: dict[int, float] = {}
        for done, (_, n) in enumerate(plan, start=1):
            if not self._trial.has_time(_expected(took, n)):
                self._missing[n] = "time"
                continue
            try:
                began = monotonic()
                self._times[n] += once(n)
                took[n] = monotonic() - began
            except Stopped:
                self._missing |= {m: "stopped" for m in self._wanted if not self._times[m]}
                if not any(self._times.values()):
                    raise
                return
            yield Progressed(done, len(plan), n, self._times[n][-1])

    def points(self) -> tuple[Timed, ...]:
        """The places that were measured at least once."""
        return tuple(Timed(n, tuple(times)) for n, times in self._times.items() if times)

    def absent(self) -> tuple[Absent, ...]:
        """The others, and why."""
        return tuple(Absent(n, why) for n, why in sorted(self._missing.items()) if not self._times[n])


def _expected(took: dict[int, float], n: int) -> float:
    """Seconds of the next visit: as the last one there, else in proportion to the nearest smaller place."""
    if n in took:
        return took[n]
    smaller = max((m for m in took if m < n), default=None)
    return 0.0 if smaller is None else took[smaller] * n / smaller
