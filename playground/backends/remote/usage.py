"""How full a server's own cache is: asked at most once a second, for all sessions together.

Knows no page; who asks never waits, and gets what was known last.
"""

import threading
from collections.abc import Callable
from time import monotonic

from playground.core.refusal import Refused

EVERY_SECONDS = 1.0
GIVE_UP_AFTER = 3
"""Failures in a row after which a server is not asked again for half a minute."""
REST_SECONDS = 30.0

_all: dict[tuple[str, str], "Usage"] = {}
_lock = threading.Lock()
SERVERS_LIMIT = 64


class Usage:
    """The latest share of one server's cache; `ask` is called on a thread of its own."""

    def __init__(self, ask: Callable[[], float | None], every_seconds: float = EVERY_SECONDS) -> None:
        self._ask, self._every_seconds = ask, every_seconds
        self._share: float | None = None
        self._due, self._failures = 0.0, 0
        self._busy = threading.Lock()

    def share(self) -> float | None:
        """What was known last, at most a few seconds old; asks again in the background where it is due."""
        if monotonic() >= self._due and self._busy.acquire(blocking=False):
            self._due = monotonic() + self._every_seconds
            threading.Thread(target=self._refresh, name="usage", daemon=True).start()
        return self._share

    def _refresh(self) -> None:
        try:
            self._share, self._failures = self._ask(), 0
        except Refused:
            self._share, self._failures = None, self._failures + 1
            if self._failures >= GIVE_UP_AFTER:
                self._due = monotonic() + REST_SECONDS
        finally:
            self._busy.release()


def usage_of(root: str, key: str, ask: Callable[[], float | None]) -> Usage:
    """The one usage of the server at `root` for whoever has the same key; the oldest is forgotten."""
    with _lock:
        found = _all.pop((root, key), None) or Usage(ask)
        _all[(root, key)] = found
        while len(_all) > SERVERS_LIMIT:
            del _all[next(iter(_all))]
        return found
