"""The lanes of a run as parallel requests: one thread each, one queue for whoever makes events of them.

Knows no event.
"""

import logging
import threading
from collections.abc import Sequence
from queue import Empty, Full, Queue
from time import monotonic

from playground.backends.remote.answers import Answer, Ended
from playground.backends.remote.connection import Close
from playground.backends.remote.dialect import Asked, Dialect
from playground.backends.remote.faults import ServerFault
from playground.backends.remote.forcing import answers
from playground.core.refusal import Refused

AHEAD_LIMIT = 256
"""Of answers that nobody has taken: while nobody watches, the stream is not read any further."""
_UNEXPECTED = "The server's answer could not be read; what had come is kept, and the log has the details."

_log = logging.getLogger(__name__)

Came = tuple[int, Answer | Ended | Refused, float]
"""The lane, what came, and the second of the monotonic clock at which it did."""


class Streams:
    """Every lane's stream, read ahead a little; `stop` ends one, or all."""

    def __init__(self, dialect: Dialect, asked: Sequence[Asked]) -> None:
        self._dialect = dialect
        self._came: Queue[Came] = Queue(AHEAD_LIMIT)
        self._closes: dict[int, Close] = {}
        self._stopped: set[int] = set()
        self._lock = threading.Lock()
        for index, one in enumerate(asked):
            threading.Thread(target=self._read, args=(index, one), name="remote lane", daemon=True).start()

    def next(self, seconds: float) -> Came | None:
        """What came next, None where nothing did within `seconds`."""
        try:
            return self._came.get(timeout=seconds)
        except Empty:
            return None

    def stop(self, index: int) -> None:
        """Nothing more of this lane: its request is closed, so that the server stops computing."""
        with self._lock:
            self._stopped.add(index)
            close = self._closes.pop(index, None)
        if close is not None:
            close()

    def _read(self, index: int, asked: Asked) -> None:
        try:
            for found in answers(self._dialect, asked, lambda close: self._opened(index, close)):
                if not self._put(index, found):
                    return
            self._put(index, Ended(None))
        except Refused as refused:
            self._put(index, refused)
        except Exception:  # a server sends whatever it likes
            if index not in self._stopped:
                _log.exception("A server's answer could not be read.")
            self._put(index, ServerFault(_UNEXPECTED))

    def _put(self, index: int, found: Answer | Ended | Refused) -> bool:
        came = (index, found, monotonic())
        while index not in self._stopped:
            try:
                self._came.put(came, timeout=0.2)
            except Full:
                continue
            return True
        return False

    def _opened(self, index: int, close: Close) -> None:
        with self._lock:
            stopped = index in self._stopped
            if not stopped:
                self._closes[index] = close
        if stopped:
            close()
