"""An answer in time, a failure in time, and none."""

import threading
from time import monotonic

import pytest

from playground.core.deadline import within


def test_an_answer_in_time() -> None:
    assert within(5, lambda: 42) == 42
    assert within(5, lambda: None) is None


def test_a_failure_in_time_is_raised_here() -> None:
    def fail() -> int:
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        within(5, fail)


def test_nobody_waits_longer() -> None:
    hold = threading.Event()
    began = monotonic()
    with pytest.raises(TimeoutError):
        within(0.05, hold.wait)
    assert monotonic() - began < 2
    hold.set()
