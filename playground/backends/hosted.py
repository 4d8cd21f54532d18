"""The runs of all sessions, kept on the server.

A run belongs to a session, has an unguessable id and outlives the page that started it, so that a
reload finds it again. What comes before the dot of a session's name is its owner, who may have several
and leaves with all of them. Knows no page and no model.
"""

import secrets
import threading
from collections.abc import Callable
from dataclasses import replace
from time import monotonic
from typing import Any, TypeVar

from playground.backends.hosted_race import HostedRace
from playground.backends.hosted_run import Hosted, HostedRun, Manner
from playground.backends.protocol import Backend, BackendError
from playground.backends.trimming import trim
from playground.core.joining import Joined
from playground.core.request import Request

__all__ = ["Hosted", "HostedRace", "HostedRun", "Runs"]

MIB = 2**20
CLOSING_SECONDS = 10.0
"""For the forward in hand of each run, and for its trace to be written."""

Kept = TypeVar("Kept", bound=Hosted[Any])
Ended = Callable[[Hosted[Any]], None]


class Runs:
    """The runs of all sessions, bounded in number and in (approximate) bytes.

    Runs that ended are dropped `ttl_seconds` after their last reader, and the longest idle ones
    earlier where room is needed; a running one ends where nothing else is left to make room. `at_end` is
    told of each run that has ended, on the thread that drove it. All that an owner has is dropped
    `grace_seconds` after it has left.
    """

    def __init__(
        self, ttl_seconds: float = 3600, abandon_seconds: float = 30,
        bytes_limit: int = 512 * MIB, runs_limit: int = 256, at_end: Ended | None = None,
        grace_seconds: float = 120,
    ) -> None:  # fmt: skip
        self._ttl_seconds, self._abandon_seconds = ttl_seconds, abandon_seconds
        self._bytes_limit, self._runs_limit = bytes_limit, runs_limit
        self.at_end, self.grace_seconds = at_end, grace_seconds
        self._left_at: dict[str, float] = {}
        self._runs: dict[str, Hosted[Any]] = {}
        self._lock = threading.RLock()
        self._janitor: threading.Thread | None = None

    def start(
        self, session: str, backend: Backend, request: Request, label: str = "",
        joined: Joined | None = None, manner: Manner = "play",
    ) -> HostedRun:  # fmt: skip
        """Begin a run of `session`, which supersedes its running one without waiting for its end.

        `joined` is what it goes on from; `manner` says whether it plays, stands after its first token or holds
        before it. Raises `Refused` where the backend refuses the request at once, and `BackendError` where every
        place is taken by a running run; then nothing is stopped.
        """
        run = HostedRun(session, self._named(request), self._may_grow, joined)
        run.label = label
        {"play": run.play, "step": run.step, "hold": run.pause}[manner]()
        run.open(backend)
        return self.admit(run)

    def race(self, session: str, backend: Backend, request: Request, label: str = "") -> HostedRace:
        """A race that `admit` begins; opening it takes two forwards, so nothing is held meanwhile.

        Raises `Refused` as `start` does; whatever the session has running is left alone by that.
        """
        race = HostedRace(session, self._named(request), self._may_grow)
        race.label = label
        race.open(backend)
        return race

    def admit(self, run: Kept) -> Kept:
        """Begin what has been opened, in the place of the session's running one; raises as `start`."""
        with self._lock:
            self._make_room()
            self.stop(run.session)
            run.at_end = self.at_end
            self._runs[run.id] = run
            self._left_at.pop(_owner(run.session), None)
            self._keep_tended()
        run.begin()
        return run

    def _named(self, request: Request) -> Request:
        if request.run and request.run not in self._runs:
            return request
        return replace(request, run=secrets.token_urlsafe(16))

    def get(self, session: str, run_id: str) -> Hosted[Any] | None:
        """The run of that id, if it is this session's and still kept."""
        run = self._runs.get(run_id)
        if run is None or run.session != session:
            return None
        with self._lock:
            self._left_at.pop(_owner(session), None)  # whoever asks for its run has come back
        return run

    def of(self, *sessions: str) -> list[Hosted[Any]]:
        """All that is kept of the sessions, in the order in which it was begun or recalled."""
        with self._lock:
            return [run for run in self._runs.values() if run.session in sessions]

    def recall(self, run: Kept) -> Kept:
        """Let a kept run be its session's youngest again; whatever the session has running is stopped."""
        with self._lock:
            if self._runs.get(run.id) is run:
                if run is not self.latest(run.session):
                    self.stop(run.session)
                self._runs[run.id] = self._runs.pop(run.id)
        return run

    def latest(self, session: str) -> Hosted[Any] | None:
        """The session's youngest run, if one is kept."""
        return next(reversed(self.of(session)), None)

    def youngest(self, *sessions: str) -> Hosted[Any] | None:
        """The run of any of the sessions that was begun last, if one is kept."""
        return next(reversed(self.of(*sessions)), None)

    def stop(self, session: str) -> bool:
        """Stop what the session has running, at once; whether there was anything."""
        running = [run for run in self.of(session) if not run.done and not run.control.stopped]
        for run in running:
            run.stop()
        return bool(running)

    def forget(self, session: str) -> None:
        """Stop and drop everything of the session."""
        self.stop(session)
        with self._lock:
            for run in self.of(session):
                self._drop(run)

    def leave(self, owner: str) -> None:
        """The owner's last page is closed: what it has goes after the grace, in which a reload comes back."""
        with self._lock:
            if self._sessions_of(owner):
                self._left_at[owner] = monotonic()

    @property
    def in_flight(self) -> int:
        """Runs that have begun and not ended, paused ones too."""
        with self._lock:
            return sum(not run.done for run in self._runs.values())

    def close(self, within_seconds: float = CLOSING_SECONDS) -> None:
        """Stop everything and wait until it has ended and been told to `at_end`, but no longer than that."""
        with self._lock:
            running = [run for run in self._runs.values() if not run.over.is_set()]
        for run in running:
            run.stop()
        until = monotonic() + within_seconds
        for run in running:
            run.over.wait(max(0.0, until - monotonic()))

    def __len__(self) -> int:
        return len(self._runs)

    def _sessions_of(self, owner: str) -> set[str]:
        return {run.session for run in self._runs.values() if _owner(run.session) == owner}

    def _make_room(self) -> None:
        self._drop_ended()
        while len(self._runs) >= self._runs_limit:
            victim = self._least_missed()
            if victim is None:
                raise BackendError("Too many runs are in progress here; try again when one has ended.")
            self._drop(victim)

    def _drop_ended(self) -> None:
        """Let ended runs go until the bytes fit, or only running ones are left."""
        while self._bytes() > self._bytes_limit:
            victim = self._least_missed()
            if victim is None:
                return
            self._drop(victim)

    def _drop(self, run: Hosted[Any]) -> None:
        """The run is gone, and with it what its backend keeps to continue it."""
        del self._runs[run.id]
        run.release()

    def _may_grow(self, run: Hosted[Any]) -> bool:
        """Asked by a running run after each event: a quarter of the bytes is the most for one run,
        and where all of them do not fit, ended runs go first and then the largest one ends."""
        if run.bytes > self._bytes_limit // 4:
            return False
        with self._lock:
            self._drop_ended()
            largest = max((other.bytes for other in self._runs.values() if not other.done), default=0)
            return self._bytes() <= self._bytes_limit or run.bytes < largest

    def _least_missed(self) -> Hosted[Any] | None:
        """The ended run to drop first: not the youngest of its session if possible, longest idle."""
        youngest = {run.session: run for run in self._runs.values()}
        ended = [run for run in self._runs.values() if run.done]
        return min(ended, key=lambda run: (youngest[run.session] is run, run.idle_since), default=None)

    def _bytes(self) -> int:
        return sum(run.bytes for run in self._runs.values())

    def _keep_tended(self) -> None:
        if self._janitor is None:
            self._janitor = threading.Thread(target=self._tend, name="janitor", daemon=True)
            self._janitor.start()

    def _tend(self) -> None:
        """The janitor's rounds; it leaves when nothing is kept."""
        pause = threading.Event()
        rounds = min(1.0, *(t / 4 for t in (self._abandon_seconds, self._ttl_seconds, self.grace_seconds)))
        while not pause.wait(rounds):
            with self._lock:
                self._tend_once(monotonic())
                if not self._runs:
                    self._left_at.clear()
                    self._janitor = None
                    return

    def _tend_once(self, now: float) -> None:
        for run in list(self._runs.values()):
            run.tend(now, self._abandon_seconds)
            if run.done and now - run.idle_since >= self._ttl_seconds:
                self._drop(run)
        before = len(self._runs)
        for owner in [owner for owner, at in self._left_at.items() if now - at >= self.grace_seconds]:
            del self._left_at[owner]
            for session in self._sessions_of(owner):
                self.forget(session)
        if len(self._runs) < before:
            trim()


def _owner(session: str) -> str:
    return session.partition(".")[0]
