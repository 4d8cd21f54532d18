"""Turns on one device: every forward runs on one thread, first come first served.

A turn is one forward with the choice that follows, never a whole run, so the runs of several people
advance together. One thread for all models of a CPU, because OpenMP keeps a pool of workers for each
thread that calls it, and two pools on the same cores wait for each other: measured on 2 cores, a step
of the default model took 36 ms with one pool and 60 ms with two. Knows no model.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Result = TypeVar("Result")


class Turns:
    """A queue of forwards."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "forwards", initializer=self._note_thread)
        self._ident: int | None = None

    def take(self, work: Callable[[], Result]) -> Result:
        """Wait for a turn, run `work`, and return what it returns or raise what it raises.

        Called within a turn (by a callback that runs the model itself), it runs at once.
        """
        if threading.get_ident() == self._ident:
            return work()
        return self._thread.submit(work).result()

    def _note_thread(self) -> None:
        self._ident = threading.get_ident()


@cache
def turns_of(device: str) -> Turns:
    """The one queue of `device` (`cpu`, `cuda:0`), shared by every model on it."""
    return Turns()
