"""Wishes of the page for a run: what is refused leaves it alone, and what goes on is told as one run."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from playground.backends.local import LocalBackend
from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.ui.session import Tab
from playground.ui.steering import steered
from playground.ui.streaming import Service
from tests.engine.families import tiny

KEY = "run"


@pytest.fixture
def service(serviced: Callable[..., Service], tab: Tab) -> Iterator[Service]:
    made = serviced(LocalBackend(tiny("llama")))
    for _ in made.models.ready(None):
        pass
    yield made


def begun(service: Service, tab: Tab, tokens: int = 12, lanes: int = 1) -> Any:
    decoding = Decoding(temperature=0.9, seed=3, max_new_tokens=tokens)
    request = Request(prompt_ids=(5, 6, 7, 8), lanes=(decoding,) * lanes, chat=False)
    backend = service.models.loaded()
    assert backend is not None
    return service.runs.start(tab.key(KEY), backend, request)


def wish(
    service: Service, tab: Tab, run: Any, settings: Decoding | None = None, **data: Any
) -> list[dict[str, Any]]:
    settings = settings or Decoding(temperature=0.9, max_new_tokens=12)
    told = steered(service, KEY, run, {"session": tab.token, **data}, lambda: settings)
    return [json.loads(value) for value in told]


def latest(service: Service, tab: Tab) -> Any:
    return service.runs.latest(tab.key(KEY))


def test_back_step_and_play_make_the_run_that_never_stopped(service: Service, tab: Tab) -> None:
    run = begun(service, tab)
    assert run.ended(10)
    ids = run.run.lanes[0].token_ids
    told = steered(
        service,
        KEY,
        run,
        {"session": tab.token, "action": "back", "step": 6},
        lambda: Decoding(temperature=0.9, max_new_tokens=12),
    )
    packet = next(json.loads(value) for value in told if '"events"' in value)
    assert packet["steering"]["state"] == "paused" and [
        b["step"] for b in packet["steering"]["branches"]
    ] == [0, 6]
    back = latest(service, tab)
    assert back.run.lanes[0].token_ids == ids[:6] and not back.done
    wish(service, tab, back, action="step")
    while len(back.run.lanes[0].steps) < 7:
        assert not back.done
    assert back.control.asked_at is not None
    wish(service, tab, back, action="play")
    told.close()
    for _ in back.follow():
        pass
    assert back.run.lanes[0].token_ids == ids
    assert back.run.lanes[0].resumed[0].tokens_computed == 1


def test_several_lanes_stand_and_step_together(service: Service, tab: Tab) -> None:
    run = begun(service, tab, tokens=40, lanes=3)
    wish(service, tab, run, action="pause")
    wish(service, tab, run, action="step")
    for _ in range(200):
        if run.control.asked_at is not None and len({len(lane.steps) for lane in run.run.lanes}) == 1:
            break
        run.control.wait(0.01)
    assert len({len(lane.steps) for lane in run.run.lanes}) == 1 and not run.done
    (packet,) = wish(service, tab, run, action="back", step=1)
    assert "single lane" in packet["error"] and not run.control.stopped
    run.stop()


@pytest.mark.parametrize(
    "data",
    [
        {"action": "fly"}, {"action": None}, {}, {"action": "back", "step": 99}, {"action": "back", "step": True},
        {"action": "branch", "step": 1}, {"action": "branch", "step": 1, "id": -4},
        {"action": "branch", "step": 1, "id": 10**9},
        {"action": "boost", "step": 1, "id": 5, "by": 10**6}, {"action": "boost", "step": 1, "id": 5, "by": "2"},
        {"action": "force", "step": 1, "text": ""}, {"action": "force", "step": 1, "text": "x" * 3000},
        {"action": "force", "step": 1, "text": ["a"]}, {"action": "show", "branch": "none"},
        {"action": "show", "branch": 5}, {"action": "speed", "tokens_per_second": 0},
        {"action": "speed", "tokens_per_second": "fast"},
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_a_sentence(service: Service, tab: Tab, data: dict[str, Any]) -> None:
    run = begun(service, tab)
    assert run.ended(10)
    (packet,) = wish(service, tab, run, **data)
    assert packet["error"].endswith(".") and latest(service, tab) is run


def test_nothing_of_nobody_goes_on(service: Service, tab: Tab) -> None:
    (packet,) = wish(service, tab, None, action="play")
    assert packet["error"].endswith(".")


def test_branches_part_from_their_run_and_are_shown_again(service: Service, tab: Tab) -> None:
    run = begun(service, tab)
    assert run.ended(10)
    before = run.run.lanes[0]
    other = next(c.token.id for c in before.steps[4].candidates if c.token.id != before.token_ids[4])
    wish(service, tab, run, action="branch", step=4, id=other)
    branch = latest(service, tab)
    assert branch.run.lanes[0].token_ids[:5] == [*before.token_ids[:4], other]
    assert branch.run.lanes[0].steps[4].origin == "forced"
    wish(service, tab, run, GREEDY, action="ban", step=4, id=before.token_ids[4], whole=True)
    banned = latest(service, tab)
    assert before.token_ids[4] not in banned.run.lanes[0].token_ids[4:]
    packets = wish(service, tab, banned, action="show", branch=run.id)
    assert latest(service, tab) is run
    steering = next(packet["steering"] for packet in packets if "steering" in packet)
    assert {one["run"] for one in steering["branches"]} == {run.id, branch.id, banned.id}
    assert [one["current"] for one in steering["branches"]] == [True, False, False]
    assert steering["kept"]["held_bytes"] > 0
