"""Freed memory goes back to the system: C's allocator keeps what it was given, for whoever asks next.

On a server that many have left, that is most of what it held. Knows no run.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache


def trim() -> None:
    """Give back what is free, where the allocator can: glibc's; elsewhere nothing is done."""
    give_back = _malloc_trim()
    if give_back is not None:
        give_back(0)


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    if sys.platform != "linux":
        return None
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):  # another C library
        return None
    return found
