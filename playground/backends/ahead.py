"""Events that are made ahead of their reader, on a thread of their own, until the reader has had enough.

Knows no platform, no model and no run.
"""

import threading
from collections.abc import Callable, Generator, Iterator
from contextvars import Context
from queue import Empty, SimpleQueue

from playground.core.control import Control
from playground.core.events import Event, Stepped

HEARD_SECONDS = 0.2
"""A stop is heard at least so often, also while nothing comes."""


class Ahead:
    """`call()` makes the events, in the context `context`; closing stops it after its next one."""

    def __init__(self, call: Callable[[], Generator[Event, None, None]], context: Context) -> None:
        self._call, self._context = call, context
        self._waiting: SimpleQueue[Event | Exception | None] = SimpleQueue()
        self._closed = threading.Event()

    def events(self, control: Control) -> Iterator[Event]:
        """One by one; raises what the call raised. Ends early where `control` is stopped."""
        threading.Thread(target=self._context.run, args=(self._fill,), name="ahead", daemon=True).start()
        while not control.stopped:
            try:
                found = self._waiting.get(timeout=HEARD_SECONDS)
            except Empty:
                continue
            if isinstance(found, Exception):
                raise found
            if found is None:
                return
            yield found

    def close(self) -> int:
        """Have no more of it; the number of steps that were made and will not be seen."""
        self._closed.set()
        unseen = set()
        while not self._waiting.empty():
            found = self._waiting.get()
            if isinstance(found, Stepped):
                unseen.add(found.step)
        return len(unseen)

    def _fill(self) -> None:
        try:
            events = self._call()
            for event in events:
                self._waiting.put(event)
                if self._closed.is_set():
                    events.close()
                    break
        except Exception as error:
            self._waiting.put(error)
        finally:
            self._waiting.put(None)
