"""The handle on a running run: stop it, or hold it while nobody watches.

The engine asks before each forward and never in the middle of one. Knows no run and no thread of
its own.
"""

import threading
from time import monotonic


class Control:
    """Stop is final; a pause holds the run at the next forward until it is resumed or stopped."""

    def __init__(self) -> None:
        self._go = threading.Event()
        self._go.set()
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped

    def stop(self) -> None:
        """No further forward; also frees a paused run, so that it can end."""
        self._stopped = True
        self._go.set()

    def pause(self) -> None:
        """Hold the run before its next forward."""
        if not self._stopped:
            self._go.clear()

    def resume(self) -> None:
        """Let a held run go on."""
        self._go.set()

    def held_seconds(self) -> float:
        """Called by the engine before a forward: waits while paused, and says for how long."""
        if self._go.is_set():
            return 0.0
        began = monotonic()
        self._go.wait()
        return monotonic() - began
