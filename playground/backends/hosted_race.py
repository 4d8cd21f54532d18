"""One race on the server: as a hosted run, with two runs and the ticks between them in one stream.

Knows no registry, no page and no model.
"""

from collections.abc import Callable, Iterator
from typing import Any

from playground.backends.hosted_run import Hosted
from playground.backends.protocol import Backend, BackendError, Racer
from playground.core.events import Failed
from playground.core.race import WITH, WITHOUT, Item, Race, follow, result
from playground.core.request import Request
from playground.core.run import Run, cancellations


class HostedRace(Hosted[Item]):
    """One race. `race` is its fold so far."""

    def __init__(self, session: str, request: Request, may_grow: Callable[[Hosted[Any]], bool]) -> None:
        super().__init__(session, request, may_grow)
        self.race = Race()
        self._items: list[Item] = []

    @property
    def events(self) -> list[Item]:
        """Both runs' events, ticks and the result."""
        return self._items

    @property
    def record(self) -> Race:
        """The race."""
        return self.race

    def _opened(self, backend: Backend) -> Iterator[Item]:
        if not isinstance(backend, Racer):
            raise BackendError("This model cannot run a race with and without its KV cache; choose another.")
        return backend.race(self.request, self.control)

    def _take(self, event: Item) -> None:
        follow(self.race, event)
        self._items.append(event)

    def _complete(self) -> bool:
        return self.race.raced is not None or any(run.failed is not None for run in self._runs())

    def _failed(self, message: str, seconds: float) -> None:
        for ending, run in zip((WITH, WITHOUT), self._runs(), strict=True):
            if not run.done:
                self._take(Failed(self.id + ending, None, message, seconds))

    def _cancelled(self, seconds: float) -> None:
        """Only what had begun can be ended; a race stopped before that has failed to begin."""
        if not any(run.lanes for run in self._runs()):
            return
        for run in self._runs():
            for event in cancellations(run, seconds):
                self._take(event)
        self._take(result(self.race))

    def _forget(self) -> None:
        for ending in (WITH, WITHOUT):
            self._backend.forget(self.id + ending)

    def _runs(self) -> tuple[Run, Run]:
        return self.race.cached, self.race.uncached
