"""A recorded run played again: the same events, paced, stoppable, under another id."""

import threading
import time
from dataclasses import replace

import pytest

from playground.backends.protocol import BackendError
from playground.backends.replay import ReplayBackend, ReplayRaceBackend
from playground.core.control import Control
from playground.core.events import Failed, Finished, Stepped
from playground.core.race import WITH, WITHOUT, Race, Ticked, follow, result
from playground.core.record import items, record_id
from playground.core.request import Request
from playground.core.run import fold
from playground.core.trace import Trace, dumps_trace, loads_trace


def play(backend, request=Request(), control=None):
    return list(backend.stream(request, control or Control()))


@pytest.mark.parametrize("lanes", [1, 3])
def test_at_once_it_yields_the_same_events(record, lanes):
    run = record(20, lanes)
    assert play(ReplayBackend(run, None)) == run.events
    assert play(ReplayBackend(loads_trace(dumps_trace([run])), None)) == run.events


def test_the_run_id_is_rewritten_everywhere(record):
    run = record(3)
    played = fold(play(ReplayBackend(run, None), Request(run="mine")))
    assert {event.run for event in played.events} == {"mine"}
    assert played.started.request.run == "mine"
    assert [replace(e, run="recorded") for e in played.events[1:]] == run.events[1:]
    assert {event.run for event in run.events} == {"recorded"}


@pytest.mark.alone
def test_recorded_pace_is_the_recorded_clock(record):
    began = time.monotonic()
    play(ReplayBackend(record(6, step_seconds=0.02)))
    assert 0.1 <= time.monotonic() - began < 0.25


@pytest.mark.alone
def test_tokens_a_second(record):
    began = time.monotonic()
    played = play(ReplayBackend(record(40, lanes=2), 400))
    assert sum(isinstance(event, Stepped) for event in played) == 80
    assert 0.1 <= time.monotonic() - began < 0.25


def test_stop_ends_every_open_lane_as_cancelled(record):
    control = Control()
    events = []
    for event in ReplayBackend(record(1000, lanes=2), None).stream(Request(), control):
        events.append(event)
        if isinstance(event, Stepped) and event.step == 4:
            control.stop()
    run = fold(events)
    assert [lane.finish_reason for lane in run.lanes] == ["cancelled", "cancelled"]
    assert run.lanes[0].text == " 0 1 2 3 4"
    assert len(run.lanes[0].steps) == 5


@pytest.mark.alone
def test_stop_does_not_wait_for_the_pace(record):
    control = Control()
    threading.Timer(0.03, control.stop).start()
    began = time.monotonic()
    last = play(ReplayBackend(record(3), 0.01), control=control)[-1]
    assert isinstance(last, Finished)
    assert time.monotonic() - began < 0.5


@pytest.mark.alone
def test_a_pause_holds_the_replay_and_shifts_its_clock(record):
    control = Control()
    control.pause()
    threading.Timer(0.06, control.resume).start()
    began = time.monotonic()
    assert len(play(ReplayBackend(record(4, step_seconds=0.02)), control=control)) == 7
    assert 0.12 <= time.monotonic() - began < 0.3


def test_a_record_that_breaks_off_says_so(record):
    run = fold(record(5).events[:-2])
    played = play(ReplayBackend(run, None))
    assert played[:-1] == run.events
    assert isinstance(played[-1], Failed)
    assert "breaks off" in played[-1].message


def test_facts_are_the_recorded_model_s(record):
    run = record(1)
    assert ReplayBackend(run).facts() == run.started.model


def test_tokenizing_is_refused_in_a_sentence(record):
    with pytest.raises(BackendError, match="no tokenizer"):
        ReplayBackend(record(1)).tokenize("x", chat=True, system=None)


@pytest.mark.parametrize("pace", [0, -1, float("nan"), float("inf")])
def test_a_pace_must_be_above_zero(record, pace):
    with pytest.raises(BackendError, match="pace"):
        ReplayBackend(record(1), pace)


def test_an_empty_trace_is_refused():
    with pytest.raises(BackendError, match="nothing to replay"):
        ReplayBackend(Trace())


def raced(record, steps=(4, 4), ticks=4) -> Race:
    sides = [record(n, run="race" + ending) for n, ending in zip(steps, (WITH, WITHOUT), strict=True)]
    race = Race(*sides, ticks=[Ticked(n, True, 1e-6) for n in range(ticks)])
    race.raced = result(race)
    return race


def replayed(race: Race) -> Race:
    shown = Race()
    for item in ReplayRaceBackend(race).race(Request(run="mine"), Control()):
        follow(shown, item)
    return shown


def test_a_race_is_played_again_under_another_id(record):
    race = raced(record)
    shown = replayed(race)
    assert record_id(shown) == "mine"
    assert [type(item) for item in items(shown)] == [type(item) for item in items(race)]
    assert (shown.ticks, shown.raced) == (race.ticks, race.raced)
    assert shown.uncached.lanes[0].token_ids == race.uncached.lanes[0].token_ids


def test_a_side_that_breaks_off_ends_with_a_sentence(record):
    race = raced(record)
    race.uncached = fold(race.uncached.events[:-1])
    race.raced = None
    shown = replayed(race)
    assert "breaks off" in shown.uncached.failed.message
    assert shown.cached.failed is None
