"""Turns on one model: every forward runs on one thread, first come first served.

A turn is one forward (with the choice that follows), never a whole run, so the runs of several
people advance together. One thread, because OpenMP keeps a pool for each thread that calls it:
forwards that hop over threads cost a quarter more. Knows no model.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Turns:
    """A queue of forwards for one model. `inline` runs them on the caller's thread instead.

    Inline is for places that lend the device to the calling thread only (ZeroGPU).
    """

    def __init__(self, *, inline: bool = False) -> None:
        self._thread = None if inline else ThreadPoolExecutor(1, thread_name_prefix="forwards")
        self._lock = threading.Lock()

    def take(self, work: Callable[[], Result]) -> Result:
        """Wait for a turn, run `work`, and return what it returns or raise what it raises."""
        if self._thread is None:
            with self._lock:
                return work()
        return self._thread.submit(work).result()

    def close(self) -> None:
        """Let the thread end after the turns already queued."""
        if self._thread is not None:
            self._thread.shutdown(wait=False)
