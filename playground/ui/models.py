"""The models that this server can answer with: loaded in the background, at most two of them kept.

Loading a model never disturbs a run. A failed load leaves everything as it was, so the model that
a third one replaces goes when that one is there, not before. Knows no page and no way of loading,
which is handed in.
"""

import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from playground.backends.protocol import Backend, BackendError
from playground.core.refusal import Refused
from playground.core.request import ModelFacts
from playground.engine.progress import CannotLoad, Progress, Report

Loader = Callable[[str, Report], Backend]

KEPT_MODELS = 2
POLL_SECONDS = 0.25
WAITING_LIMIT = 4
CONNECTIONS_LIMIT = 64
REMOTE = "remote:"
"""Before the unguessable name of a connection that a visitor made: whoever knows the name may use it."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Place:
    future: Future[Backend]
    latest: list[Progress] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the load has ended without a backend."""
        return self.future.done() and self.future.exception() is not None


class Models:
    """Backends by name, the default first.

    `offered` are the names of the picker; others are accepted only where `open_names` is true,
    since a name may be a path on this machine.
    """

    def __init__(
        self, loader: Loader, default: str, offered: tuple[str, ...] = (), open_names: bool = True
    ) -> None:
        self.default = default
        self.offered = (default, *(name for name in offered if name != default))
        self._loader, self.open_names = loader, open_names
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="loading")
        self._lock = threading.Lock()
        self._places: dict[str, _Place] = {}
        self._connected: OrderedDict[str, Backend] = OrderedDict()

    def connect(self, backend: Backend) -> str:
        """Take a visitor's own backend under a name that nobody else can guess; the oldest go."""
        name = REMOTE + secrets.token_urlsafe(16)
        with self._lock:
            self._connected[name] = backend
            while len(self._connected) > CONNECTIONS_LIMIT:
                self._connected.popitem(last=False)
        return name

    def disconnect(self, name: str) -> None:
        """Let a connection go; a run that has it goes on."""
        with self._lock:
            self._connected.pop(name, None)

    def begin(self, name: str | None = None) -> None:
        """Start loading, in the background, unless it is there or on its way."""
        self._place(name or self.default)

    def ready(self, name: str | None = None) -> Generator[Progress | None, None, Backend]:
        """Wait for a model: a generator of progress whose return value is the backend.

        Raises `CannotLoad` or `BackendError` with one sentence.
        """
        if (name or "").startswith(REMOTE):
            return self._connection(name or "")
        place = self._place(name or self.default)
        while not place.future.done():
            yield place.latest[-1] if place.latest else None
            _wait(place.future)
        return place.future.result()

    def loaded(self, name: str | None = None) -> Backend | None:
        """The backend, if it is there already."""
        if name is not None and name.startswith(REMOTE):
            return self._connected.get(name)
        place = self._places.get(name or self.default)
        if place is None or not place.future.done() or place.failed:
            return None
        return place.future.result()

    def maker_of(self, facts: ModelFacts) -> Backend | None:
        """The loaded backend with these facts, under whatever name it was asked for; None where it is gone."""
        with self._lock:
            names = list(self._places)
        backends = (self.loaded(name) for name in names)
        return next((backend for backend in backends if backend and backend.facts() == facts), None)

    def there(self) -> list[Backend]:
        """Every model that is loaded."""
        with self._lock:
            names = list(self._places)
        return [backend for name in names if (backend := self.loaded(name)) is not None]

    def state(self) -> str:
        """Of the default model: ready, loading, failed, or not begun."""
        place = self._places.get(self.default)
        if place is None:
            return "not begun"
        return ("failed" if place.failed else "ready") if place.future.done() else "loading"

    def _connection(self, name: str) -> Backend:
        with self._lock:
            found = self._connected.get(name)
        if found is None:
            raise BackendError("The connection to that server has ended; connect again under Connect.")
        return found

    def _place(self, name: str) -> _Place:
        if name not in self.offered and not self.open_names:
            raise BackendError("This server offers only the models in its list; nothing was loaded.")
        with self._lock:
            self._drop_failed()
            place = self._places.pop(name, None) or self._begin(name)
            self._places[name] = place  # the one used last stands last
            return place

    def _begin(self, name: str) -> _Place:
        if sum(not place.future.done() for place in self._places.values()) >= WAITING_LIMIT:
            raise BackendError("Several models are being loaded here already; try again when they are there.")
        latest: list[Progress] = []
        return _Place(self._thread.submit(self._load, name, latest), latest)

    def _load(self, name: str, latest: list[Progress]) -> Backend:
        def report(progress: Progress) -> None:
            latest[:] = [progress]

        try:
            backend = self._loader(name, report)
        except Refused:
            raise
        except Exception as error:
            _log.exception("A model could not be loaded.")
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise CannotLoad(
                f"{name[:80]!r} could not be loaded ({reason}); nothing was changed, and the log has the details."
            ) from error
        self._make_room(name)
        return backend

    def _drop_failed(self) -> None:
        for name in [name for name, place in self._places.items() if place.failed]:
            del self._places[name]

    def _make_room(self, name: str) -> None:
        """`name` is there: forget the models used longest ago; a run holds its own until it ends."""
        with self._lock:
            others = [other for other in self._places if other != name and self.loaded(other) is not None]
            spare = [other for other in others if other != self.default]
            for other in spare[: max(0, len(others) + 1 - KEPT_MODELS)]:
                del self._places[other]


def _wait(future: Future[Backend]) -> None:
    with suppress(TimeoutError):
        future.exception(timeout=POLL_SECONDS)


__all__ = ["CannotLoad", "Loader", "Models", "Progress"]
