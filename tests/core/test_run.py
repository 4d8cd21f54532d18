"""The fold: what each event means for a run, and the control that holds or ends it."""

import threading
import time
from dataclasses import replace

import pytest

from playground.core.control import Control
from playground.core.events import BeamStep, Drafted, Failed, Finished, Prefilling
from playground.core.run import Run, advance, cancellations, fold


def test_a_run_before_its_first_event():
    run = Run()
    assert (run.id, run.done, run.prompt_ids, run.lanes) == ("", False, [], [])


def test_the_fold_sorts_events_by_lane_and_keeps_all(run_of):
    run = run_of([5, 6], [7])
    assert [lane.token_ids for lane in run.lanes] == [[5, 6], [7]]
    assert run.prompt_ids == [1, 2, 3, 4]
    assert run.done
    assert fold(run.events) == run
    assert run.lanes[0].finish_reason == "max_new_tokens"


def test_every_kind_has_a_meaning(run_of):
    run = run_of([5], finish=False)
    more = [Prefilling("r", 1, 4, 0.1), Drafted("r", 0, 1, (), 0), BeamStep("r", 0, 1, ())]
    for event in more:
        advance(run, event)
    assert (run.prefilling, run.lanes[0].drafts, run.lanes[0].beams) == (more[0], [more[1]], [more[2]])


@pytest.mark.parametrize("lane", [-1, 2])
def test_an_event_of_no_lane_changes_nothing(run_of, lane):
    run = run_of([5], [6], finish=False)
    before = list(run.events)
    with pytest.raises(IndexError):
        advance(run, Finished("r", lane, "cancelled", "", 1.0))
    assert run.events == before
    assert run == fold(before)


def test_failures_of_a_lane_and_of_the_run(run_of):
    run = run_of([5], [6], finish=False)
    advance(run, Failed("r", 1, "No memory.", 3.0))
    assert [lane.done for lane in run.lanes] == [False, True]
    assert run.lanes[1].finish_reason == "error"
    assert not run.done
    advance(run, Failed("r", None, "The server is gone.", 4.0))
    assert run.done
    assert run.lanes[0].token_ids == [5]


def test_text_that_may_become_a_stop_string_is_not_shown_while_the_lane_runs(run_of):
    run = run_of([5, 6], finish=False)
    lane = run.lanes[0]
    assert lane.text == " 5 6"
    lane.steps[-1] = replace(lane.steps[-1], held_characters=3)
    assert lane.text == " "
    assert run_of([], finish=False).lanes[0].text == ""


def test_joined_step_texts_are_the_decoding_and_withheld_steps_are_the_last_ones(run_of):
    run = run_of([5, 6, 7], finish=False)
    advance(
        run, Finished("r", 0, "stop_string", " 5", 1.0, tail="\ufffd", stop_string=" 6", withheld_steps=2)
    )
    lane = run.lanes[0]
    assert "".join(lane.step_texts()) == " 5 6 7\ufffd"
    assert lane.text == " 5"
    assert [lane.withheld(n) for n in range(3)] == [False, True, True]


def test_cancellations_end_open_lanes_only(run_of):
    run = run_of([5], [6, 7], finish=False)
    advance(run, Finished("r", 0, "stop_token", " 5", 1.0))
    (event,) = cancellations(run, 2.5)
    assert event == Finished("r", 1, "cancelled", " 6 7", 2.5)
    assert advance(run, event).done


def test_a_pause_holds_until_resumed_and_says_for_how_long():
    control = Control()
    assert control.held_seconds() == 0.0
    control.pause()
    assert control.paused
    threading.Timer(0.02, control.resume).start()
    assert 0.01 < control.held_seconds() < 1


def test_stop_is_final_and_frees_a_held_run():
    control = Control()
    control.pause()
    threading.Timer(0.01, control.stop).start()
    assert control.held_seconds() < 1
    control.pause()
    assert control.stopped
    assert not control.paused


def test_a_pace_s_wait_ends_with_a_stop():
    control = Control()
    assert control.wait(0.001) is False
    assert control.wait(-1) is False
    threading.Timer(0.01, control.stop).start()
    began = time.monotonic()
    assert control.wait(5) is True
    assert time.monotonic() - began < 1
