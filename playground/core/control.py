"""The handle on a running run: stop it, or hold it while nobody watches.

The engine asks before each forward and never in the middle of one. Knows no run and no thread of
its own.
"""

import threading
from time import monotonic


class Control:
    """Stop is final; a pause holds the run at the next forward until it is resumed or stopped."""

    def __init__(self) -> None:
        self._change = threading.Lock()
        self._go = threading.Event()
        self._go.set()
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    @property
    def paused(self) -> bool:
        """Whether the run is to be held before its next forward."""
        return not self._go.is_set()

    def stop(self) -> None:
        """No further forward; also frees a paused run, so that it can end."""
        with self._change:
            self._stop.set()
            self._go.set()

    def pause(self) -> None:
        """Hold the run before its next forward; without effect once stopped."""
        with self._change:
            if not self.stopped:
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

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds`, less if stopped; whether it is stopped. For paced backends."""
        return self._stop.wait(max(0.0, seconds))
