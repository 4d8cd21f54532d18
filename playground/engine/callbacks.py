"""Other people's code in the loop: called with each event and a view of the live step.

A callback has any of `on_prefill(event, live)`, `on_step(event, live)`, `on_finish(event)`. One that
raises is reported and detached; the run goes on. Knows no particular callback.
"""

import logging
from collections.abc import Iterable
from typing import Any

from playground.core.events import Event, Finished, Prefilled, Stepped
from playground.engine.live import Live, LiveView

_log = logging.getLogger(__name__)
_HOOKS: dict[type, str] = {Prefilled: "on_prefill", Stepped: "on_step", Finished: "on_finish"}


class Callbacks:
    """The callbacks of one run that are still attached."""

    def __init__(self, callbacks: Iterable[Any]) -> None:
        self._attached = list(callbacks)

    def __bool__(self) -> bool:
        return bool(self._attached)

    def call(self, event: Event, live: Live) -> None:
        """Give `event` to every callback that asks for its kind."""
        hook = _HOOKS.get(type(event))
        if hook is None or not self._attached:
            return
        view = LiveView(live)
        for callback in list(self._attached):
            method = getattr(callback, hook, None)
            if method is not None:
                self._guarded(callback, method, (event,) if hook == "on_finish" else (event, view))
        view.close()

    def _guarded(self, callback: Any, method: Any, arguments: tuple[Any, ...]) -> None:
        try:
            method(*arguments)
        except Exception:
            self._attached.remove(callback)
            _log.exception("The callback %r raised and was detached; the run goes on.", callback)
