"""What the stage is sent: only events, exactly once, as strict JSON."""

import json

from playground.core.codec import decode
from playground.core.decoding import GREEDY
from playground.core.events import Finished, Started
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Token
from playground.views.packets import error_packet, events_packet, progress_packet, recorded_packet, wire

FACTS = ModelFacts("tests/none", None, "cpu", "float32", 10, 100)
EVENTS = (
    Started("r", Request("a", (GREEDY,), run="r"), FACTS, (Token(1, "<b>\ud83d"),)),
    Finished("r", 0, "max_new_tokens", "</script>", 1.0),
)


def test_a_packet_carries_events_and_their_place() -> None:
    packet = json.loads(wire(events_packet("r", 5, EVENTS), 3))
    assert (packet["run"], packet["first"], packet["seq"]) == ("r", 5, 3)
    assert tuple(decode(event) for event in packet["events"]) == EVENTS


def test_a_recorded_run_comes_whole_and_says_so() -> None:
    packet = recorded_packet(EVENTS)
    assert (packet["first"], packet["label"], len(packet["events"])) == (0, "recorded", 2)


def test_an_error_brings_no_events_so_that_the_finished_run_stays() -> None:
    packet = error_packet("It is empty.")
    assert packet["error"] == "It is empty."
    assert packet["progress"] is None
    assert "run" not in packet and "events" not in packet


def test_progress_takes_an_error_away() -> None:
    packet = progress_packet("Loading", 1, 2)
    assert packet["error"] == ""
    assert packet["progress"] == {"sentence": "Loading", "done_bytes": 1, "total_bytes": 2}


def test_no_two_packets_are_equal_on_the_wire() -> None:
    assert wire(error_packet("x"), 1) != wire(error_packet("x"), 2)
