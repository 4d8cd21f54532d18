"""The runs of all sessions, kept on the server.

A run belongs to a session, has an unguessable id and outlives the page that started it, so that a
reload finds it again. Knows no page and no model.
"""

import secrets
import threading
from dataclasses import replace
from time import monotonic
from typing import Any, TypeVar

from playground.backends.hosted_race import HostedRace
from playground.backends.hosted_run import Hosted, HostedRun
from playground.backends.protocol import Backend, BackendError
from playground.core.request import Request

__all__ = ["Hosted", "HostedRace", "HostedRun", "Runs"]

MIB = 2**20

Kept = TypeVar("Kept", bound=Hosted[Any])


class Runs:
    """The runs of all sessions, bounded in number and in (approximate) bytes.

    Runs that ended are dropped `ttl_seconds` after their last reader, and the longest idle ones
    earlier where room is needed; a running one ends where nothing else is left to make room.
    """

    def __init__(
        self, ttl_seconds: float = 3600, abandon_seconds: float = 30,
        bytes_limit: int = 512 * MIB, runs_limit: int = 256,
    ) -> None:  # fmt: skip
        self._ttl_seconds, self._abandon_seconds = ttl_seconds, abandon_seconds
        self._bytes_limit, self._runs_limit = bytes_limit, runs_limit
        self._runs: dict[str, Hosted[Any]] = {}
        self._lock = threading.RLock()
        self._janitor: threading.Thread | None = None

    def start(self, session: str, backend: Backend, request: Request) -> HostedRun:
        """Begin a run of `session`, which supersedes its running one without waiting for its end.

        Raises `Refused` where the backend refuses the request at once, and `BackendError` where every
        place is taken by a running run; then nothing is stopped.
        """
        run = HostedRun(session, self._named(request), self._may_grow)
        run.open(backend)
        return self.admit(run)

    def race(self, session: str, backend: Backend, request: Request) -> HostedRace:
        """A race that `admit` begins; opening it takes two forwards, so nothing is held meanwhile.

        Raises `Refused` as `start` does; whatever the session has running is left alone by that.
        """
        race = HostedRace(session, self._named(request), self._may_grow)
        race.open(backend)
        return race

    def admit(self, run: Kept) -> Kept:
        """Begin what has been opened, in the place of the session's running one; raises as `start`."""
        with self._lock:
            self._make_room()
            self.stop(run.session)
            self._runs[run.id] = run
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
        return run if run is not None and run.session == session else None

    def latest(self, session: str) -> Hosted[Any] | None:
        """The session's youngest run, if one is kept."""
        return next(reversed(self._of(session)), None)

    def youngest(self, *sessions: str) -> Hosted[Any] | None:
        """The run of any of the sessions that was begun last, if one is kept."""
        with self._lock:
            kept = [run for run in self._runs.values() if run.session in sessions]
        return kept[-1] if kept else None

    def stop(self, session: str) -> bool:
        """Stop what the session has running, at once; whether there was anything."""
        running = [run for run in self._of(session) if not run.done and not run.control.stopped]
        for run in running:
            run.stop()
        return bool(running)

    def forget(self, session: str) -> None:
        """Stop and drop everything of the session."""
        self.stop(session)
        with self._lock:
            for run in self._of(session):
                self._drop(run)

    def __len__(self) -> int:
        return len(self._runs)

    def _of(self, session: str) -> list[Hosted[Any]]:
        with self._lock:
            return [run for run in self._runs.values() if run.session == session]

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
        while not pause.wait(min(1.0, self._abandon_seconds / 4, self._ttl_seconds / 4)):
            with self._lock:
                self._tend_once(monotonic())
                if not self._runs:
                    self._janitor = None
                    return

    def _tend_once(self, now: float) -> None:
        for run in list(self._runs.values()):
            run.tend(now, self._abandon_seconds)
            if run.done and now - run.idle_since >= self._ttl_seconds:
                self._drop(run)
