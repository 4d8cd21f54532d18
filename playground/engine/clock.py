"""Seconds since a run began, read after the device has finished, without the time a run was held.

Knows no run.
"""

from time import perf_counter
from typing import Any

import torch


class Clock:
    """A monotonic clock for one run on one device."""

    def __init__(self, device: Any) -> None:
        self._cuda = torch.device(device).type == "cuda"
        self._device = device
        self._began = perf_counter()

    def seconds(self) -> float:
        """Seconds since the run began; waits for a GPU's queued work first."""
        if self._cuda:
            torch.cuda.synchronize(self._device)
        return round(perf_counter() - self._began, 6)

    def leave_out(self, seconds: float) -> None:
        """Do not count `seconds` during which nobody watched and the run stood still."""
        self._began += seconds
