"""Hosted runs: many readers, ownership, stop, supersede, pause, abandonment, bounds."""

import gc
import threading
import time
import tracemalloc

import pytest

from playground.backends import hosted, hosted_run
from playground.backends.hosted import HostedRun, Runs
from playground.backends.protocol import BackendError
from playground.core.decoding import InvalidSetting
from playground.core.events import Finished, Stepped
from playground.core.request import Request


@pytest.fixture
def runs():
    runs = Runs()
    yield runs
    for session in {run.session for run in list(runs._runs.values())}:
        runs.forget(session)


def read_all(run: HostedRun, first: int = 0) -> list:
    events, deadline = [], time.monotonic() + 5
    for at, batch in run.follow(first, interval_seconds=0.001):
        assert time.monotonic() < deadline, "the run does not end"
        assert at == first + len(events)
        events += batch
    return events


def until(condition, seconds: float = 2.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come about in time"
        time.sleep(0.002)


def steps_of(run: HostedRun) -> int:
    return sum(isinstance(event, Stepped) for event in run.run.events)


def test_every_event_arrives_once_and_in_order(runs, scripted):
    run = runs.start("me", scripted(200), Request())
    events = read_all(run)
    assert [e.step for e in events if isinstance(e, Stepped)] == list(range(200))
    assert events == run.run.events
    assert run.done
    assert run.run.done


def test_several_readers_and_a_late_one_see_the_same(runs, scripted):
    backend = scripted(50, by_hand=True)
    run = runs.start("me", backend, Request())
    seen: list[list] = [[], []]
    readers = [threading.Thread(target=lambda i=i: seen[i].extend(read_all(run))) for i in range(2)]
    for reader in readers:
        reader.start()
    backend.go(20)
    until(lambda: steps_of(run) == 20)
    backend.go(30)
    late = read_all(run, first=10)
    for reader in readers:
        reader.join(2)
    assert seen[0] == seen[1] == run.run.events
    assert late == run.run.events[10:]


@pytest.mark.parametrize(("first", "expected"), [(-5, 0), (4, 4), (10**9, 8)])
def test_a_reader_may_ask_for_any_index(runs, scripted, first, expected):
    run = runs.start("me", scripted(5), Request())
    until(lambda: run.done)
    at, batch = next(run.follow(first))
    assert (at, batch) == (expected, run.run.events[expected:])


@pytest.mark.alone
def test_first_batch_comes_at_once_and_the_last_does_not_wait_for_its_interval(runs, scripted):
    backend = scripted(2, by_hand=True)
    run = runs.start("me", backend, Request())
    follower = run.follow(interval_seconds=0.3)
    began = time.monotonic()
    assert next(follower)[1]
    backend.go(2)
    rest = [event for _, batch in follower for event in batch]
    assert isinstance(rest[-1], Finished)
    assert time.monotonic() - began < 0.25


def test_batches_are_coalesced(runs, scripted):
    backend = scripted(30, by_hand=True)
    run = runs.start("me", backend, Request())
    follower = run.follow(interval_seconds=0.1)
    next(follower)
    for _ in range(20):
        backend.go()
        time.sleep(0.001)
    assert len(next(follower)[1]) >= 10
    follower.close()


@pytest.mark.alone
def test_a_waiting_reader_gets_heartbeats(runs, scripted):
    run = runs.start("me", scripted(1, by_hand=True), Request())
    follower = run.follow()
    until(lambda: len(run.run.events) == 2)
    assert next(follower)[0] == 0
    began = time.monotonic()
    assert next(follower) == (2, [])
    assert time.monotonic() - began < 0.5
    follower.close()


def test_ids_are_unguessable_and_a_run_belongs_to_its_session(runs, scripted):
    run = runs.start("me", scripted(), Request())
    other = runs.start("you", scripted(), Request(run=run.id))
    assert len(run.id) >= 20
    assert other.id != run.id
    assert runs.get("me", run.id) is run
    assert runs.get("you", run.id) is None
    assert runs.get("me", "nothing") is None
    assert runs.latest("me") is run
    assert runs.latest("nobody") is None


def test_stop_makes_no_forward_after_the_current_one_and_keeps_what_there_is(runs, scripted):
    backend = scripted(1000, by_hand=True)
    run = runs.start("me", backend, Request())
    backend.go(5)
    until(lambda: steps_of(run) == 5)
    assert runs.stop("me") is True
    backend.go(100)
    until(lambda: run.done)
    assert backend.forwards == 5
    assert run.run.lanes[0].finish_reason == "cancelled"
    assert len(run.run.lanes[0].steps) == 5
    assert runs.stop("me") is False


def test_stop_and_start_at_once_ten_times(runs, scripted):
    backends = [scripted(1000, by_hand=True) for _ in range(10)]
    started = []
    for backend in backends:
        started.append(runs.start("me", backend, Request()))
        backend.go(1)
        until(lambda run=started[-1]: steps_of(run) == 1)
        assert runs.stop("me")
    last = scripted(3)
    assert len(read_all(runs.start("me", last, Request()))) == 6
    until(lambda: all(run.done for run in started))
    assert [backend.forwards for backend in backends] == [1] * 10


def test_a_new_run_supersedes_the_session_s_own_and_no_other(runs, scripted):
    mine, yours = scripted(1000, by_hand=True), scripted(2, by_hand=True)
    old, other = runs.start("me", mine, Request()), runs.start("you", yours, Request())
    new = runs.start("me", scripted(2), Request())
    assert len(read_all(new)) == 5
    until(lambda: old.done)
    assert old.run.lanes[0].finish_reason == "cancelled"
    yours.go(2)
    assert [e.reason for e in read_all(other) if isinstance(e, Finished)] == ["max_new_tokens"]
    assert runs.latest("me") is new


def test_closing_the_page_holds_the_run_and_a_reload_lets_it_go_on(runs, scripted):
    backend = scripted(10, by_hand=True)
    run = runs.start("me", backend, Request())
    follower = run.follow(interval_seconds=0.001)
    backend.go(3)
    until(lambda: steps_of(run) == 3)
    next(follower)
    follower.close()
    backend.go(1)  # the forward that was going on when the page was closed
    time.sleep(0.03)
    held_at = backend.forwards
    assert held_at <= 4
    backend.go(6)
    time.sleep(0.05)
    assert backend.forwards == held_at
    assert not run.done
    assert len(read_all(runs.get("me", run.id))) == 13


def test_an_abandoned_run_is_stopped_by_itself(scripted):
    runs = Runs(abandon_seconds=0.08)
    backend = scripted(1000, by_hand=True)
    run = runs.start("me", backend, Request())
    follower = run.follow()
    next(follower)
    follower.close()
    until(lambda: run.done)
    assert run.run.lanes[0].finish_reason == "cancelled"
    assert backend.closed.is_set()


def test_a_run_that_nobody_comes_for_is_held_after_the_grace(scripted, monkeypatch):
    monkeypatch.setattr(hosted_run, "GRACE_SECONDS", 0.02)
    runs = Runs(abandon_seconds=0.4)
    run = runs.start("me", scripted(1000, by_hand=True), Request())
    until(lambda: run.control.paused)
    assert not run.done
    until(lambda: run.done)


def test_a_run_that_is_read_is_left_in_peace(scripted):
    runs = Runs(abandon_seconds=0.04)
    backend = scripted(2, by_hand=True)
    run = runs.start("me", backend, Request())
    follower = run.follow()
    next(follower)
    time.sleep(0.12)
    assert not run.control.paused
    backend.go(2)
    assert [e for _, batch in follower for e in batch][-1].reason == "max_new_tokens"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (BackendError("The server is gone; start it again."), "The server is gone; start it again."),
        (InvalidSetting("top_p must be less."), "top_p must be less."),
    ],
)
def test_a_refusal_is_said_as_it_is_and_nothing_is_lost(runs, scripted, error, message):
    run = runs.start("me", scripted(4, fails_with=error), Request())
    read_all(run)
    assert run.run.failed.message == message
    assert run.run.failed.run == run.id
    assert len(run.run.lanes[0].steps) == 4


def test_any_other_error_is_logged_and_said_in_one_sentence(runs, scripted, caplog):
    run = runs.start("me", scripted(4, fails_with=ZeroDivisionError("secret detail")), Request())
    read_all(run)
    assert "secret detail" not in run.run.failed.message
    assert "ZeroDivisionError" in caplog.text
    assert len(run.run.lanes[0].steps) == 4


def test_a_backend_that_just_stops_talking_is_reported(runs, scripted):
    class Silent(scripted):
        def stream(self, request, control):
            yield from list(super().stream(request, control))[:3]

    run = runs.start("me", Silent(), Request())
    read_all(run)
    assert run.run.failed.message == hosted_run._BROKEN_OFF


def test_a_record_beyond_its_bytes_ends_with_a_sentence(scripted):
    runs = Runs(bytes_limit=4 * 20_000)
    run = runs.start("me", scripted(1000), Request())
    read_all(run)
    assert run.run.failed.message == hosted_run._TOO_LARGE
    assert 5 < len(run.run.lanes[0].steps) < 30


def test_the_records_of_all_running_runs_together_are_bounded(scripted):
    """Many runs below the limit of one: the largest ends, the others go on."""
    bytes_limit = 100_000
    runs = Runs(bytes_limit=bytes_limit)
    backends = [scripted(1000, by_hand=True) for _ in range(6)]
    made = [runs.start(f"session {i}", backend, Request()) for i, backend in enumerate(backends)]
    for _ in range(15):
        for run, backend in zip(made, backends, strict=True):
            before = len(run.run.events)
            backend.go()
            until(lambda run=run, before=before: run.done or len(run.run.events) > before)
            assert runs._bytes() <= bytes_limit + 2 * 1300
    ended = [run for run in made if run.done]
    assert ended
    assert {run.run.failed.message for run in ended} == {hosted_run._TOO_LARGE}
    for i in range(6):
        runs.forget(f"session {i}")


def test_a_refused_start_stops_nothing(scripted):
    runs = Runs(runs_limit=2)
    mine = scripted(9, by_hand=True)
    old = runs.start("me", mine, Request())
    runs.start("you", scripted(9, by_hand=True), Request())
    with pytest.raises(BackendError, match="Too many runs"):
        runs.start("me", scripted(1), Request())
    assert not old.control.stopped
    mine.go(9)
    assert len(read_all(old)) == 12
    runs.forget("you")


def test_runs_are_bounded_and_running_ones_of_others_are_never_dropped(scripted):
    runs = Runs(runs_limit=3)
    live = runs.start("live", scripted(9, by_hand=True), Request())
    for session in ("a", "b", "c", "d"):
        read_all(runs.start(session, scripted(1), Request()))
        assert len(runs) <= 3
    assert runs.get("live", live.id) is live
    assert runs.latest("a") is None
    assert runs.latest("d") is not None
    runs.forget("live")


def test_with_every_place_running_a_new_one_is_refused_in_a_sentence(scripted):
    runs = Runs(runs_limit=2)
    for session in ("a", "b"):
        runs.start(session, scripted(9, by_hand=True), Request())
    with pytest.raises(BackendError, match="Too many runs"):
        runs.start("c", scripted(), Request())
    runs.forget("a")
    assert read_all(runs.start("c", scripted(1), Request()))
    runs.forget("b")


def test_what_a_backend_keeps_of_a_run_goes_with_the_run(scripted, runs):
    ended, running = scripted(1), scripted(9, by_hand=True)
    first = runs.start("me", ended, Request())
    read_all(first)
    second = runs.start("me", running, Request())
    assert ended.forgotten == []  # it may be continued as long as it is kept
    runs.forget("me")
    assert ended.forgotten == [first.id]
    until(lambda: running.forgotten == [second.id])  # after its end, when its cache has been left behind
    assert running.closed.is_set()


@pytest.fixture
def clock(monkeypatch):
    """The registry's clock, as the only element of a list."""
    now = [1000.0]
    monkeypatch.setattr(hosted, "monotonic", lambda: now[0])
    return now


def test_what_an_owner_has_goes_once_the_grace_is_over(runs, scripted, clock):
    ended, running, others = scripted(1), scripted(9, by_hand=True), scripted(1)
    first = runs.start("tab.run", ended, Request())
    live = runs.start("tab.compare", running, Request())
    kept = runs.start("tab2.run", others, Request())
    read_all(first)
    read_all(kept)
    runs.leave("tab")
    runs._tend_once(clock[0] + 119)
    assert len(runs) == 3 and not live.control.stopped
    runs._tend_once(clock[0] + 120)
    assert len(runs) == 1 and runs.get("tab2.run", kept.id) is kept
    assert ended.forgotten == [first.id] and others.forgotten == []
    until(lambda: running.forgotten == [live.id])
    assert live.run.lanes[0].finish_reason == "cancelled"


@pytest.mark.parametrize("comes_back", ["reads", "runs"])
def test_who_comes_back_within_the_grace_keeps_everything(runs, scripted, clock, comes_back):
    run = runs.start("tab.run", scripted(1), Request())
    read_all(run)
    runs.leave("tab")
    if comes_back == "reads":
        assert runs.get("tab.run", run.id) is run
    else:
        read_all(runs.start("tab.compare", scripted(1), Request()))
    runs._tend_once(clock[0] + 1000)
    assert runs.get("tab.run", run.id) is run


def test_asking_for_another_s_run_keeps_nothing_alive(runs, scripted, clock):
    run = runs.start("tab.run", scripted(1), Request())
    read_all(run)
    runs.leave("tab")
    runs.leave("nobody")
    assert runs.get("thief.run", run.id) is None and runs.get("tab.run", "nothing") is None
    runs._tend_once(clock[0] + 120)
    assert len(runs) == 0 and runs._left_at == {}


def test_a_session_s_youngest_run_is_dropped_last(scripted):
    runs = Runs(runs_limit=3)
    yours = runs.start("you", scripted(1), Request())
    read_all(yours)
    mine = [runs.start("me", scripted(1), Request()) for _ in range(2)]
    until(lambda: all(run.done for run in mine))
    runs.start("third", scripted(1), Request())
    assert runs.get("you", yours.id) is yours
    assert runs.get("me", mine[0].id) is None
    assert runs.get("me", mine[1].id) is mine[1]


def test_ended_runs_expire_by_themselves_and_the_janitor_leaves(scripted):
    runs = Runs(ttl_seconds=0.05)
    read_all(runs.start("me", scripted(1), Request()))
    until(lambda: len(runs) == 0)
    until(lambda: runs._janitor is None)


def test_two_hundred_sessions_are_freed(scripted):
    """Case 23: 200 sessions of 50 steps; what is kept is bounded, and gone after forgetting."""
    bytes_limit = 2 * 2**20
    runs = Runs(bytes_limit=bytes_limit)
    threads = threading.active_count()
    tracemalloc.start()
    try:
        gc.collect()
        base = tracemalloc.get_traced_memory()[0]
        for i in range(200):
            assert len(read_all(runs.start(f"session {i}", scripted(50), Request()))) == 53
        assert sum(run.bytes for run in runs._runs.values()) < bytes_limit + 100_000
        assert len(runs) < 50
        for i in range(200):
            runs.forget(f"session {i}")
        until(lambda: threading.active_count() <= threads + 1)  # the janitor may still be leaving
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - base < 300_000
    finally:
        tracemalloc.stop()


def test_a_refused_request_leaves_the_running_one_alone(runs, scripted):
    """Bad input never loses a run: the session's running run goes on, and nothing new is kept."""

    class Refusing(scripted):
        def stream(self, request, control):
            raise InvalidSetting("top_p must be a number from 0 to 1, not 2.")

    backend = scripted(3, by_hand=True)
    first = runs.start("me", backend, Request())
    with pytest.raises(InvalidSetting):
        runs.start("me", Refusing(), Request())
    assert runs.latest("me") is first and not first.control.stopped and len(runs) == 1
    backend.go(3)
    assert read_all(first)[-1].reason == "max_new_tokens"


def test_a_recalled_run_is_the_youngest_again(runs, scripted):
    first = runs.start("me", scripted(3), Request())
    read_all(first)
    second = runs.start("me", scripted(3), Request())
    read_all(second)
    assert runs.of("me", "you") == [first, second]
    assert runs.recall(first) is first
    assert (runs.latest("me"), runs.of("me")) == (first, [second, first])


def test_recalling_stops_what_runs_and_not_itself(runs, scripted):
    first = runs.start("me", scripted(3), Request())
    read_all(first)
    running = runs.start("me", scripted(50, by_hand=True), Request())
    runs.recall(running)
    assert not running.control.stopped
    runs.recall(first)
    until(lambda: running.done)
    assert runs.latest("me") is first


def test_whoever_keeps_runs_is_told_of_each_end_with_its_label(scripted):
    ended: list[tuple[str, str, bool]] = []
    runs = Runs(at_end=lambda run: ended.append((run.session, run.label, run.done)))
    runs.start("me", scripted(3), Request())
    runs.start("you", scripted(3), Request(), "imported")
    until(lambda: len(ended) == 2)
    assert sorted(ended) == [("me", "", True), ("you", "imported", True)]
