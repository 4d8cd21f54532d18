"""One run on the server: driven once, followed by any number of readers from any event on.

While nobody reads it makes no forward; left alone for long it is stopped. `Hosted` is what a run and
a race (`hosted_race`) have in common. Knows no registry, no page, no model, and nothing of what an
event means beyond the fold.
"""

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Generic, Literal, TypeVar

from playground.backends.protocol import Backend, BackendError
from playground.core.control import Control
from playground.core.events import Event, Failed, PromptRead, Started, Stepped
from playground.core.joining import Joined
from playground.core.race import Item
from playground.core.record import Record
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.run import Run, advance, cancellations

HEARTBEAT_SECONDS = 0.4
"""A reader never waits longer for an answer, so that a closed page is noticed."""

HOLD_SECONDS = 120.0
"""How long a run stays paused; then it ends as stopped, and whoever plays it goes on from its cache."""

GRACE_SECONDS = 5.0
"""How long a new run goes on before its first reader has come."""

_STOPPED_EARLY = "The run was stopped before it began; generate again to start a new one."
_BROKEN_OFF = "The run broke off without a reason; what it had is kept, so generate again."
_UNEXPECTED = "The run met an unexpected error; what it had is kept, and the log has the details."
_TOO_LARGE = "The record of this run has reached its size limit; it is kept, and the run ends here."

_log = logging.getLogger(__name__)

Manner = Literal["play", "step", "hold"]
"""How a run goes: on and on, one token and then held, or held at once."""

Told = TypeVar("Told", bound=Item)


class Hosted(ABC, Generic[Told]):
    """A stream of events in the making, or made; `events` only grows.

    `label` says where it comes from, empty for one that was made here; `at_end` is called once it has ended, and
    `over` is set when that has returned.
    """

    def __init__(self, session: str, request: Request, may_grow: Callable[["Hosted[Any]"], bool]) -> None:
        self.id = request.run
        self.session = session
        self.label = ""
        self.at_end: Callable[[Hosted[Any]], None] | None = None
        self.over = threading.Event()
        self.control = Control()
        self.bytes = 0
        self.idle_since = self._began = monotonic()
        self.request, self._may_grow = request, may_grow
        self._news = threading.Condition()
        self._readers = 0
        self._over = self._released = False

    @property
    @abstractmethod
    def events(self) -> list[Told]:
        """All that has come, in order."""

    @property
    @abstractmethod
    def record(self) -> Record:
        """What it is so far, as a trace holds it."""

    @property
    def backend(self) -> Backend | None:
        """What it was opened with; None before."""
        return getattr(self, "_backend", None)

    @property
    def done(self) -> bool:
        """Whether the stream has ended; no event will come."""
        return self._over

    def open(self, backend: Backend) -> None:
        """Hand the request to the backend, which may refuse it at once (`Refused`)."""
        self._backend = backend
        try:
            self._stream = self._opened(backend)
        except Refused:
            raise
        except Exception:
            _log.exception("A run could not be opened.")
            raise BackendError(_UNEXPECTED) from None

    def begin(self) -> None:
        """Drive the opened run on a thread of its own; called once."""
        threading.Thread(target=self._drive, name="run", daemon=True).start()

    def stop(self) -> None:
        """No forward after the current one; returns at once."""
        self.control.stop()

    def ended(self, within_seconds: float) -> bool:
        """Wait for its end; whether it has come."""
        with self._news:
            return self._news.wait_for(lambda: self._over, within_seconds)

    def release(self) -> None:
        """Nobody will continue this run: what its backend keeps of it goes, at the latest when it ends."""
        with self._news:
            self._released = True
            over = self._over
        if over:
            self._forget()

    def follow(self, first: int = 0, interval_seconds: float = 0.04) -> Iterator[tuple[int, list[Told]]]:
        """The events from index `first` on, as (index of the first one, events).

        What is there comes at once, then at most one batch an interval, and the last one at once
        when the run ends. An empty batch is a heartbeat. Closing the iterator detaches the reader.
        """
        at = min(max(0, first), len(self.events))
        self._attach()
        try:
            due, over = monotonic(), False
            while not over:
                batch, over = self._awaited(at, due)
                due = monotonic() + interval_seconds
                yield at, batch
                at += len(batch)
        finally:
            self._detach()

    def tend(self, now: float, abandon_seconds: float) -> None:
        """Pause a run for which nobody came; stop one that was left alone too long."""
        with self._news:
            alone_seconds = 0.0 if self._readers or self._over else now - self.idle_since
            if alone_seconds >= GRACE_SECONDS:
                self.control.pause()
        asked_at = self.control.asked_at
        if alone_seconds >= abandon_seconds or (asked_at is not None and now - asked_at >= HOLD_SECONDS):
            self.stop()

    def _drive(self) -> None:
        """Take the backend's events one by one; whatever happens, the run has an end."""
        try:
            for event in self._stream:
                self._add(event)
        except Refused as error:
            self._fail(str(error))
        except Exception:
            _log.exception("A run failed.")
            self._fail(_UNEXPECTED)
        finally:
            if hasattr(self._stream, "close"):
                self._stream.close()
            self._end()

    def _add(self, event: Told) -> None:
        with self._news:
            self._take(event)
            self.bytes += approximate_bytes(event)
            self._news.notify_all()
        if not self._may_grow(self):
            raise BackendError(_TOO_LARGE)

    def _fail(self, message: str) -> None:
        with self._news:
            self._failed(message, monotonic() - self._began)

    def _end(self) -> None:
        with self._news:
            if not self._complete() and self.control.stopped:
                self._cancelled(monotonic() - self._began)
            if not self._complete():
                self._fail(_STOPPED_EARLY if self.control.stopped else _BROKEN_OFF)
            self._over, self.idle_since = True, monotonic()
            released = self._released
            self._news.notify_all()
        if released:
            self._forget()
        try:
            if self.at_end is not None:
                self.at_end(self)
        finally:
            self.over.set()

    def _awaited(self, at: int, due: float) -> tuple[list[Told], bool]:
        """What the driving thread has added since `at`; waits for `due`, then for the first event."""
        events, until = self.events, monotonic() + HEARTBEAT_SECONDS
        with self._news:
            self._news.wait_for(
                lambda: self._over or self._complete(), max(0.0, min(due, until) - monotonic())
            )
            self._news.wait_for(lambda: self._over or len(events) > at, max(0.0, until - monotonic()))
            return events[at:], self._over

    def _attach(self) -> None:
        with self._news:
            self._readers += 1
            self.control.resume()

    def _detach(self) -> None:
        with self._news:
            self._readers -= 1
            self.idle_since = monotonic()
            if self._readers == 0 and not self._over:
                self.control.pause()

    @abstractmethod
    def _opened(self, backend: Backend) -> Iterator[Told]:
        """The backend's stream."""

    @abstractmethod
    def _take(self, event: Told) -> None:
        """Fold one more event, and keep it."""

    @abstractmethod
    def _complete(self) -> bool:
        """Whether what has come has an end."""

    @abstractmethod
    def _failed(self, message: str, seconds: float) -> None:
        """Take the event of a failure."""

    @abstractmethod
    def _cancelled(self, seconds: float) -> None:
        """Take the events that a stop has kept from coming."""

    @abstractmethod
    def _forget(self) -> None:
        """Let the backend drop what it keeps."""


class HostedRun(Hosted[Event]):
    """One run. `run` is its fold so far; where it goes on from another one, that of both (`joined`)."""

    def __init__(
        self,
        session: str,
        request: Request,
        may_grow: Callable[[Hosted[Any]], bool],
        joined: Joined | None = None,
    ) -> None:
        super().__init__(session, request, may_grow)
        self.run, self.joined = Run(), joined
        self._single = False

    def pause(self) -> None:
        """Hold it before its next forward."""
        self._single = False
        self.control.pause("asked")

    def play(self) -> None:
        """Let it go on."""
        self._single = False
        self.control.resume("asked")

    def step(self) -> None:
        """Let it choose one token more, in every lane, and hold it then."""
        self._single = True
        self.control.resume("asked")

    @property
    def events(self) -> list[Event]:
        """The run's events."""
        return self.run.events

    @property
    def record(self) -> Run:
        """The run."""
        return self.run

    def note(self, event: Event) -> int:
        """Keep one more event of a run that has ended; returns its index."""
        with self._news:
            self._take(event)
            self.bytes += approximate_bytes(event)
            return len(self.events) - 1

    def _opened(self, backend: Backend) -> Iterator[Event]:
        return backend.stream(self.request, self.control)

    def _take(self, event: Event) -> None:
        for told in [event] if self.joined is None else self.joined.told(event):
            advance(self.run, told)
        if self.joined is not None and isinstance(event, Started):
            self.bytes += sum(map(approximate_bytes, self.run.events))  # what is kept counts again
        if self._single and isinstance(event, Stepped):
            self.pause()

    def _complete(self) -> bool:
        return self.run.done

    def _failed(self, message: str, seconds: float) -> None:
        advance(self.run, Failed(self.id, None, message, seconds))

    def _cancelled(self, seconds: float) -> None:
        for event in cancellations(self.run, seconds):
            advance(self.run, event)

    def _forget(self) -> None:
        self._backend.forget(self.id)


def approximate_bytes(event: Item) -> int:
    """About what the event holds in memory: most of it are its candidates and prompt tokens."""
    if isinstance(event, Stepped):
        return 900 + 400 * len(event.candidates)
    if isinstance(event, PromptRead):
        return 300 + sum(200 + 250 * len(read.expected) for read in event.tokens)
    return 1000 + 300 * len(event.prompt) if isinstance(event, Started) else 300
