"""Hosted races: as hosted runs, with two runs and their ticks in one stream."""

import threading
import time
from collections.abc import Iterator

import pytest

from playground.backends.hosted import HostedRace, HostedRun, Runs
from playground.backends.local import LocalBackend
from playground.backends.protocol import BackendError
from playground.core.decoding import GREEDY
from playground.core.events import Failed, Stepped
from playground.core.race import WITH, WITHOUT, Raced, Ticked, work
from playground.core.request import Request
from tests.engine.conftest import byte_level_tokenizer, loaded, tiny_module

LONG = Request("hello", (GREEDY,), chat=False)


@pytest.fixture(scope="module")
def backend() -> LocalBackend:
    tokenizer = byte_level_tokenizer()
    model = loaded(tiny_module(len(tokenizer)), tokenizer)
    model.stop_ids = frozenset()
    return LocalBackend(model)


@pytest.fixture
def runs() -> Iterator[Runs]:
    runs = Runs()
    yield runs
    runs.forget("a")


def read_all(race: HostedRace) -> list:
    return [event for _, batch in race.follow(interval_seconds=0.001) for event in batch]


def until(condition, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come about in time"
        time.sleep(0.002)


def test_a_race_arrives_whole_and_can_be_read_again(runs, backend):
    race = runs.admit(runs.race("a", backend, LONG))
    events = read_all(race)
    steps = [event for event in events if isinstance(event, Stepped)]
    assert len(steps) == 2 * sum(isinstance(event, Ticked) for event in events)
    assert isinstance(events[-1], Raced)
    assert events[-1].uncached == work(len(race.race.cached.prompt_ids), len(steps) // 2, cached=False)
    assert read_all(race) == events == race.events
    assert runs.get("a", race.id) is race
    assert runs.get("b", race.id) is None
    assert len(race.id) > 15, "the id must not be guessable"


def test_a_stop_ends_both_sides_and_says_what_there_is(runs, backend):
    race = runs.admit(runs.race("a", backend, LONG))
    until(lambda: len(race.race.ticks) >= 3)
    assert runs.stop("a")
    until(lambda: race.done)
    sides = race.race.cached, race.race.uncached
    assert [run.lanes[0].finish_reason for run in sides] == ["cancelled", "cancelled"]
    assert 3 <= race.race.raced.compared_steps < GREEDY.max_new_tokens
    assert race.race.raced.tokens_equal


def test_nobody_watches_and_no_step_is_made(runs, backend):
    race = runs.admit(runs.race("a", backend, LONG))
    follower = race.follow(interval_seconds=0.001)
    while len(race.race.ticks) < 2:
        next(follower)
    follower.close()
    time.sleep(0.1)
    held = len(race.events)
    time.sleep(0.1)
    assert len(race.events) == held
    assert read_all(race)[-1] == race.race.raced


def test_a_refused_race_leaves_the_running_run_alone(runs, backend):
    run = runs.start("a", backend, LONG)
    with pytest.raises(BackendError):
        runs.race("a", backend, Request("", (GREEDY,)))
    assert not run.control.stopped
    race = runs.admit(runs.race("a", backend, LONG))
    assert run.control.stopped
    assert isinstance(run, HostedRun)
    assert runs.latest("a") is race


def test_a_backend_that_cannot_race_says_so(runs, scripted):
    with pytest.raises(BackendError, match="cannot run a race"):
        runs.race("a", scripted(), LONG)
    assert len(runs) == 0


class Breaking:
    """Breaks off before its first event, or waits there for a stop."""

    def __init__(self, waits: bool = False) -> None:
        self.waits, self.forgotten = waits, []
        self.began = threading.Event()

    facts = tokenize = stream = None

    def forget(self, run: str) -> None:
        self.forgotten.append(run)

    def race(self, request, control):
        self.began.set()
        while self.waits and not control.stopped:
            time.sleep(0.002)
        yield from ()
        if not self.waits:
            raise RuntimeError("no such thing")


@pytest.mark.parametrize(("waits", "sentence"), [(False, "unexpected error"), (True, "before it began")])
def test_a_race_that_never_began_has_one_sentence(runs, waits, sentence, caplog):
    backend = Breaking(waits)
    race = runs.admit(runs.race("a", backend, LONG))
    assert backend.began.wait(2)
    runs.stop("a")
    until(lambda: race.done)
    assert all(isinstance(event, Failed) and sentence in event.message for event in race.events)
    assert [event.run for event in race.events] == [race.id + WITH, race.id + WITHOUT]
    runs.forget("a")
    assert backend.forgotten == [race.id + WITH, race.id + WITHOUT]
