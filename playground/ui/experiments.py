"""Experiments that a page asks for: one at a time for a session, one at a time on this machine.

A new one supersedes the session's old one, as runs do; both stop before their next forward. Results are
kept for the session, so that a reload shows them again. Knows no component and nothing of what is measured.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from playground.backends.protocol import Backend, BackendError
from playground.core.control import Control
from playground.core.decoding import InvalidSetting
from playground.core.experiment import Progressed
from playground.core.refusal import Refused
from playground.ui.session import Tab
from playground.ui.streaming import Service
from playground.ui.text import say

PLACE = "measure"
SESSIONS_LIMIT = 256
WAIT_SECONDS = 0.3

Measure = Callable[[Backend, Control], Iterator[Any]]
"""From a loaded model to `Progressed` values and, last, the result; raises `Refused`."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an experiment is. `left_seconds` is estimated, None before there is anything to go by."""

    latest: Progressed
    left_seconds: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Somebody else's experiment has the device."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result; None where it was stopped before anything was measured."""

    result: Any


Told = Progress | Waiting | Done


@dataclass(slots=True)
class Experiments:
    """What the sections of a page share."""

    service: Service
    _running: dict[str, Control] = field(default_factory=dict)
    _kept: "OrderedDict[str, dict[str, Any]]" = field(default_factory=OrderedDict)
    _device: threading.Lock = field(default_factory=threading.Lock)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self, tab: Tab, name: str, model: str | None, measure: Measure, work: Sequence[int] = ()
    ) -> Iterator[Told]:
        """Make the experiment `name`; ends without a result where a later wish came first.

        `work` is the size of each measurement to come, where they differ: the time left follows it. Raises
        `Refused` where no model is loaded, or it cannot be measured.
        """
        backend = self.backend(tab, model)
        key, control = tab.key(PLACE), Control()
        if not self._begin(tab, control):
            return
        try:
            while not self._device.acquire(timeout=WAIT_SECONDS):
                if control.stopped:
                    yield Done(None)
                    return
                yield Waiting()
            try:
                yield from self._measured(tab, name, measure(backend, control), work)
            except Refused:
                if not control.stopped:
                    raise
                yield Done(None)
            finally:
                self._device.release()
        finally:
            control.stop()
            with self._lock:
                if self._running.get(key) is control:
                    del self._running[key]

    def backend(self, tab: Tab, model: str | None) -> Backend:
        """The model, if it is loaded; raises `Refused` with what to do."""
        if not tab.token:
            raise InvalidSetting(say(tab.language, "errors.no_session"))
        backend = self.service.models.loaded(model)
        if backend is None:
            raise BackendError(say(tab.language, "phases.not_loaded"))
        return backend

    def stop(self, tab: Tab) -> None:
        """Stop what the session measures, or waits for."""
        with self._lock:
            control = self._running.get(tab.key(PLACE))
        if control is not None and self.service.wish(tab.key(PLACE), tab.wish):
            control.stop()

    def kept(self, tab: Tab, name: str) -> Any:
        """The session's latest result of `name`, None where there is none."""
        with self._lock:
            return self._kept.get(tab.token, {}).get(name)

    def keep(self, tab: Tab, name: str, result: Any) -> None:
        """Keep `result` as the session's latest of `name`; the sessions unused longest are forgotten."""
        with self._lock:
            self._kept.setdefault(tab.token, {})[name] = result
            self._kept.move_to_end(tab.token)
            while len(self._kept) > SESSIONS_LIMIT:
                self._kept.popitem(last=False)

    def _begin(self, tab: Tab, control: Control) -> bool:
        """Take the session's place from whatever it measures; false where a later wish overtook this one."""
        key = tab.key(PLACE)
        if not self.service.wish(key, tab.wish):
            return False
        with self._lock:
            old = self._running.get(key)
            self._running[key] = control
        if old is not None:
            old.stop()
        return True

    def _measured(self, tab: Tab, name: str, items: Iterator[Any], work: Sequence[int]) -> Iterator[Told]:
        began, result = monotonic(), None
        for item in items:
            if isinstance(item, Progressed):
                yield Progress(item, _left_seconds(item, monotonic() - began, work))
            else:
                result = item
        if result is not None:
            self.keep(tab, name, result)
        yield Done(result)


def _left_seconds(progress: Progressed, elapsed_seconds: float, work: Sequence[int]) -> float | None:
    """As long again for the same amount of work; all measurements count alike where it is not known."""
    if not progress.done:
        return None
    sizes = work if len(work) == progress.total else [1] * progress.total
    return elapsed_seconds * sum(sizes[progress.done :]) / sum(sizes[: progress.done])
