"""Caches of ended runs, kept for whoever continues them, bounded in bytes.

A cache is found again by the token ids it was computed from; those ids are the durable state of
anything, so an evicted cache costs a prefill and nothing else. Knows no session: whoever knows a run's
unguessable id may continue it.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from playground.engine.cache import can_crop, crop, measure

DEFAULT_LIMIT_BYTES = 512 * 2**20


@dataclass(slots=True)
class _Entry:
    ids: tuple[int, ...]
    cache: Any
    allocated_bytes: int


class CacheStore:
    """At most `limit_bytes` of caches, the least recently handed over evicted first."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.limit_bytes = limit_bytes
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def held_bytes(self) -> int:
        """Bytes of all caches in the store."""
        with self._lock:
            return self._held()

    def hand_over(self, run: str, ids: tuple[int, ...], cache: Any) -> None:
        """Keep the one-row cache that `run` computed from exactly `ids`."""
        allocated = measure(cache).allocated_bytes
        if allocated is None or allocated > self.limit_bytes:
            return
        with self._lock:
            self._entries[run] = _Entry(ids, cache, allocated)
            self._entries.move_to_end(run)
            while self._held() > self.limit_bytes:
                self._entries.popitem(last=False)

    def take(self, run: str, ids: tuple[int, ...]) -> tuple[Any, int] | None:
        """Take the cache of `run` out, cropped to what it shares with `ids`, and that length.

        At least the last of `ids` is left to compute, since its logits are wanted. None where the
        run has no cache here, shares nothing, or its cache cannot be cropped that far.
        """
        with self._lock:
            entry = self._entries.pop(run, None)
        if entry is None:
            return None
        shared = min(_common(entry.ids, ids), len(ids) - 1)
        if shared == 0 or (shared < len(entry.ids) and not can_crop(entry.cache)):
            return None
        crop(entry.cache, shared)
        return entry.cache, shared

    def _held(self) -> int:
        return sum(entry.allocated_bytes for entry in self._entries.values())


def _common(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
