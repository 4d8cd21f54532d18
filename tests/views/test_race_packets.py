"""What the stage of a race is sent: both runs, ticks and result, each step with its side's work."""

import json

import pytest

from playground.core.decoding import InvalidSetting
from playground.core.events import Stepped
from playground.core.race import WITH, WITHOUT, Raced, Ticked, Work, work
from playground.core.tokens import Token
from playground.views.packets import race_packet, wire, work_packet


def stepped(run: str, step: int, prompt: int) -> Stepped:
    return Stepped(
        run, 0, step, prompt + step, Token(5, "</b>"), "</b>", 1, -0.5, 1.0, None, "argmax", (), 0.0, 1.0, 0.0, 1,
        1.0, (), 0.5, 0.75, 0, 0, 0, 1, 0,
    )  # fmt: skip


def test_a_step_carries_the_work_of_its_side() -> None:
    items = [stepped("r" + WITH, 3, 34), stepped("r" + WITHOUT, 3, 34)]
    packet = json.loads(wire(race_packet("r", 7, items), 1))
    assert (packet["run"], packet["first"]) == ("r", 7)
    for data, cached in zip(packet["events"], (True, False), strict=True):
        assert Work(**data["work"]) == work(34, 4, cached=cached)


def test_ticks_and_result_are_events_of_their_own() -> None:
    side = work(1, 2, cached=True)
    items = [Ticked(1, True, 0.5), Raced(side, side, True, None, 0.5, 2)]
    tick, raced = json.loads(wire(race_packet("r", 0, items), 1))["events"]
    assert tick == {"event": "ticked", "step": 1, "equal": True, "logit_difference": 0.5}
    assert (raced["event"], raced["cached"]["kv_computed"], raced["first_divergence"]) == ("raced", 2, None)


def test_the_articles_figures() -> None:
    packet = work_packet(1, 1000)["work"]
    assert packet["cached"]["kv_computed"] == 1000
    assert packet["uncached"]["kv_computed"] == 500_500
    assert packet["cached"]["attention_dot_products_needed"] == 500_500
    assert packet["uncached"]["attention_dot_products_needed"] == 500_500
    assert packet["uncached"]["attention_dot_products_computed"] == 167_167_000


def test_a_count_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidSetting):
        work_packet(0, 5)
