"""The handle on a running run: stop it, hold it, or slow it down.

The engine asks before each forward and never in the middle of one. Knows no run and no thread of
its own.
"""

import threading
from time import monotonic
from typing import Literal

Hold = Literal["alone", "asked"]
"""Why a run is held: nobody watches it, or somebody who watches asked for it."""


class Control:
    """Stop is final; a hold keeps the run before its next forward until it is let go or stopped.

    Holds of the two kinds are independent: one who comes back to a run that was paused finds it paused.
    """

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._stop = threading.Event()
        self._holds: dict[Hold, float] = {}
        self._pace_seconds = self._due = 0.0

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stop.is_set()

    @property
    def paused(self) -> bool:
        """Whether the run is to be held before its next forward."""
        return bool(self._holds)

    @property
    def asked_at(self) -> float | None:
        """Since when it is held on request, by the monotonic clock; None where it is not."""
        return self._holds.get("asked")

    @property
    def tokens_per_second(self) -> float | None:
        """The pace; None is as fast as it goes."""
        return 1 / self._pace_seconds if self._pace_seconds else None

    def stop(self) -> None:
        """No further forward; also frees a held run, so that it can end."""
        with self._change:
            self._stop.set()
            self._holds.clear()
            self._change.notify_all()

    def pause(self, why: Hold = "alone") -> None:
        """Hold the run before its next forward; without effect once stopped."""
        with self._change:
            if not self.stopped:
                self._holds[why] = monotonic()

    def resume(self, why: Hold = "alone") -> None:
        """Let go of that hold."""
        with self._change:
            self._holds.pop(why, None)
            self._change.notify_all()

    def pace(self, tokens_per_second: float | None) -> None:
        """From now on at most so many forwards a second; None is as fast as it goes."""
        with self._change:
            self._pace_seconds = 1 / tokens_per_second if tokens_per_second else 0.0
            self._due = monotonic() + self._pace_seconds
            self._change.notify_all()

    def held_seconds(self) -> float:
        """Called by the engine before a forward: waits while held or ahead of its pace, and says for how long."""
        if not self._holds and not self._pace_seconds:
            return 0.0
        began = monotonic()
        with self._change:
            while not self.stopped and (left := self._due - monotonic()) > 0 and self._pace_seconds:
                self._change.wait(left)
            while self._holds and not self.stopped:
                self._change.wait()
            self._due = max(self._due, monotonic()) + self._pace_seconds
        return monotonic() - began

    def wait(self, seconds: float) -> bool:
        """Sleep for `seconds`, less if stopped; whether it is stopped. For paced backends."""
        return self._stop.wait(max(0.0, seconds))
