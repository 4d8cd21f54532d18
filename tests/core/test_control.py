"""Stop, holds and pace of a running run."""

import threading
from time import monotonic

from playground.core.control import Control


def waiting(control: Control) -> tuple[threading.Thread, list[float]]:
    held: list[float] = []
    thread = threading.Thread(target=lambda: held.append(control.held_seconds()), daemon=True)
    thread.start()
    return thread, held


def test_holds_are_independent() -> None:
    control = Control()
    control.pause("asked")
    control.pause()
    thread, held = waiting(control)
    control.resume()  # somebody watches again, and finds it paused
    thread.join(0.05)
    assert thread.is_alive() and control.paused and control.asked_at is not None
    control.resume("asked")
    thread.join(5)
    assert held and held[0] > 0 and not control.paused and control.asked_at is None


def test_a_stop_frees_a_held_run_and_no_hold_takes_it_again() -> None:
    control = Control()
    control.pause("asked")
    thread, _ = waiting(control)
    control.stop()
    thread.join(5)
    control.pause("asked")
    assert not thread.is_alive() and control.stopped and not control.paused
    assert control.held_seconds() == 0.0


def test_a_pace_spaces_the_forwards() -> None:
    control = Control()
    assert control.held_seconds() == 0.0 and control.tokens_per_second is None
    control.pace(50)
    began = monotonic()
    waited = sum(control.held_seconds() for _ in range(5))
    assert waited >= 5 / 50 * 0.9 and monotonic() - began >= waited
    assert control.tokens_per_second == 50
    control.pace(0.1)
    thread, _ = waiting(control)
    control.pace(None)
    thread.join(5)
    assert not thread.is_alive()
