"""Caches of ended runs, kept for whoever continues them, bounded in bytes.

A cache is found again by its run and by the token ids it was computed from; those ids are the durable
state of anything, so an evicted cache costs a prefill and nothing else. What is in the store is never
written to: who continues gets copies of the positions that are still right, so that one run can be
continued any number of times. Knows no session: whoever knows a run's unguessable id may continue it.
"""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playground.engine.cache import Obstacle, crop_obstacle, fork, measure

DEFAULT_LIMIT_BYTES = 512 * 2**20

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reuse:
    """What an earlier run's caches are worth to a new one.

    `cache` holds the first `tokens` positions, in one row, None where there are none. `again_tokens`
    are positions that the earlier run had computed and that have to be computed again, because of
    `obstacle`; a last one whose logits are wanted does not count.
    """

    cache: Any | None = None
    tokens: int = 0
    again_tokens: int = 0
    obstacle: Obstacle | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A cache, the ids of each of its rows, and the run it comes from."""

    run: str
    rows: tuple[Ids, ...]
    cache: Any
    held_bytes: int


class CacheStore:
    """At most `limit_bytes` of caches; those least recently handed over or continued go first."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._numbers = 0
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """Bytes of all caches in the store."""
        with self._lock:
            return self._held()

    def hand_over(self, run: str, ids: Sequence[Ids], cache: Any) -> None:
        """Keep `cache`, whose rows `run` computed from exactly `ids`; it is the store's from now on."""
        held = measure(cache).held_bytes
        if not held or held > self.limit_bytes:
            return
        with self._lock:
            self._numbers += 1
            self._entries[self._numbers] = _Entry(run, tuple(ids), cache, held)
            while self._held() > self.limit_bytes:
                self._entries.popitem(last=False)

    def hand_over_rows(self, run: str, ids: Sequence[Ids], cache: Any, rows: Sequence[int]) -> None:
        """Keep copies of some `rows` of a cache that goes on without them; `ids` are of these rows."""
        held = measure(cache).held_bytes
        if not held or held > self.limit_bytes:  # of all rows: in such straits nothing is copied
            return
        copies = fork(cache, len(ids[0]), list(rows))
        if copies is not None:
            self.hand_over(run, ids, copies)

    def reuse(self, run: str, ids: Ids) -> Reuse | None:
        """A copy of what any row of `run` shares with `ids`; None where nothing of that run is kept.

        At least the last of `ids` is left to compute, since its logits are wanted.
        """
        with self._lock:
            entries = {number: entry for number, entry in self._entries.items() if entry.run == run}
            for number in entries:
                self._entries.move_to_end(number)
        if not entries:
            return None
        return _best([(entry, row) for entry in entries.values() for row in range(len(entry.rows))], ids)

    def forget(self, run: str) -> None:
        """Let go of everything of `run`."""
        with self._lock:
            for number in [number for number, entry in self._entries.items() if entry.run == run]:
                del self._entries[number]

    def clear(self) -> None:
        """Let go of everything, where memory is short."""
        with self._lock:
            self._entries.clear()

    def _held(self) -> int:
        return sum(entry.held_bytes for entry in self._entries.values())


def _best(places: list[tuple[_Entry, int]], ids: Ids) -> Reuse:
    """The most positions that can be had; tells of those that were there and cannot."""
    shared = [(_common(entry.rows[row], ids[:-1]), entry, row) for entry, row in places]
    shared.sort(key=lambda found: -found[0])
    most, obstacle = shared[0][0], None
    for tokens, entry, row in shared:
        cache = fork(entry.cache, tokens, [row]) if tokens else None
        if cache is not None:
            return Reuse(cache, tokens, most - tokens, obstacle)
        if tokens and obstacle is None:
            obstacle = crop_obstacle(entry.cache) or "other"
    return Reuse(None, 0, most, obstacle)


def _common(a: Ids, b: Ids) -> int:
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
