"""Runs that programs ask for over HTTP: the same registry and bounds as the page's, nobody watching.

A call waits for its run and takes it along; the runs of a client that is gone are stopped. Knows no
endpoint.
"""

import secrets
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playground.backends.hosted import Runs
from playground.backends.protocol import Backend, BackendError
from playground.core.control import Control
from playground.core.request import Request
from playground.core.run import Run
from playground.ui.models import Models


class Calls:
    """What is being computed for programs, by the client that asked (gradio's session of it)."""

    def __init__(self, models: Models, runs: Runs) -> None:
        self._models, self._runs = models, runs
        self._lock = threading.Lock()
        self._open: defaultdict[str, set[str]] = defaultdict(set)

    def run(self, client: str | None, model: str | None, request: Request) -> Run:
        """Make `request` and return it whole, also where it broke off; raises `Refused`."""
        with self._session(client or "") as session:
            backend = self.backend(model)
            if not self._wanted(client or "", session):
                raise BackendError("Whoever asked is gone, so nothing was run.")
            hosted = self._runs.start(session, backend, request)
            for _ in hosted.follow():
                if not self._wanted(client or "", session):
                    hosted.stop()
        if hosted.run.started is None and hosted.run.failed is not None:
            raise BackendError(hosted.run.failed.message)
        return hosted.run

    @contextmanager
    def asking(self, client: str | None) -> Iterator[Control]:
        """The control of what is answered in one go; it stops once the client is gone."""
        with self._session(client or "") as session:
            yield _WhileWanted(lambda: self._wanted(client or "", session))

    def stop(self, client: str | None) -> None:
        """The client is gone: nothing more is computed for it."""
        with self._lock:
            self._open.pop(client or "", None)

    def backend(self, model: str | None) -> Backend:
        """The model, waited for; raises `Refused`."""
        waiting = self._models.ready(model)
        while True:
            try:
                next(waiting)
            except StopIteration as ready:
                backend: Backend = ready.value
                return backend

    def _wanted(self, client: str, session: str) -> bool:
        with self._lock:
            return session in self._open.get(client, ())

    @contextmanager
    def _session(self, client: str) -> Iterator[str]:
        """A session for one call; nothing of it is kept."""
        session = f"api.{secrets.token_hex(16)}"
        with self._lock:
            self._open[client].add(session)
        try:
            yield session
        finally:
            self._runs.forget(session)
            with self._lock:
                self._open.get(client, set()).discard(session)
                if not self._open.get(client):
                    self._open.pop(client, None)


class _WhileWanted(Control):
    """Stopped as soon as nobody waits for the answer."""

    def __init__(self, wanted: Callable[[], bool]) -> None:
        super().__init__()
        self._wanted = wanted

    @property
    def stopped(self) -> bool:
        """Whether the client is gone."""
        return not self._wanted()
