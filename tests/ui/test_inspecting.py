"""What a stage asks of the server: whose run it is, what is answered, and what stands there otherwise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from playground.core.events import PromptRead, Read
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.core.tokens import Token
from playground.core.waterfall import StepWaterfall, Waterfall, WaterfallRow
from playground.engine.inspection import CannotInspect
from playground.ui.asking import answered
from playground.ui.inspecting import prompt_answer, waterfall_answer
from tests.browser.conftest import made_run
from tests.ui.conftest import FACTS, TAB, Echo

NASTY = "<img src=x>"


class Knowing(Echo):
    """Echo that can be asked."""

    asked = 0

    def step_waterfall(self, run: Run, lane: int, step: int, control: Any) -> StepWaterfall:
        if step > 2:
            raise CannotInspect("The run has no such step, so nothing was computed.")
        row = WaterfallRow(7, 1.0, 0.5, (None,), (0.0,), "top_p", False)
        return StepWaterfall(Waterfall(100, "all", (), (row,)), {7: Token(7, NASTY)}, 1, 4)

    def prompt_read(self, run: Run, control: Any) -> PromptRead:
        self.asked += 1
        return PromptRead(run.id, tuple(Read() for _ in run.prompt_ids), 0.1)


@pytest.fixture
def service(serviced: Callable[..., Any]) -> Any:
    made = serviced(Knowing())
    list(made.generate(TAB, "run", None, Request("abc", run="mine")))
    return made


def test_a_step_of_the_tabs_own_run_is_answered(service: Any) -> None:
    packet = waterfall_answer(service, TAB, {"run": "mine", "lane": 0, "step": 1})["answer"]
    assert (packet["what"], packet["run"], packet["lane"], packet["step"]) == ("waterfall", "mine", 0, 1)
    assert packet["waterfall"]["rows"][0]["token"] == [7, NASTY, "", False]
    assert (packet["computed"], packet["reused"]) == (1, 4)


def test_the_prompt_becomes_part_of_the_runs_record_once(service: Any) -> None:
    run = service.runs.get(TAB.key("run"), "mine").run
    before = len(run.events)
    packet = prompt_answer(service, TAB, {"run": "mine"})
    assert (packet["first"], len(packet["events"]), packet["label"]) == (before, 1, "")
    again = prompt_answer(service, TAB, {"run": "mine"})
    assert again["events"] == packet["events"] and again["first"] == before
    assert len(run.events) == before + 1 and run.prompt_read is not None
    assert service.models.loaded().asked == 1


def test_the_recorded_run_can_be_asked_about_and_stays_as_it_is(service: Any) -> None:
    recorded = made_run()
    started = recorded.started
    assert started is not None
    service.recorded = fold([replace(started, model=FACTS), *recorded.events[1:]])
    before = len(service.recorded.events)
    packet = prompt_answer(service, TAB, {"run": "recorded"})
    assert (packet["first"], packet["label"]) == (before, "recorded")
    assert len(service.recorded.events) == before
    assert waterfall_answer(service, TAB, {"run": "recorded", "step": 1})["answer"]["computed"] == 1


@pytest.mark.parametrize("answer", [waterfall_answer, prompt_answer])
def test_whoever_has_no_right_to_it_gets_a_sentence(service: Any, answer: Any) -> None:
    other = replace(TAB, token="f" * 32)
    for tab, data in (
        (other, {"run": "mine", "step": 0}), (TAB, {"run": "nobody's"}), (TAB, None), (TAB, "mine"),
        (TAB, {"run": ["mine"], "step": 0}), (replace(TAB, token=""), {"run": "mine"}),
    ):  # fmt: skip
        assert "no longer kept" in answer(service, tab, data)["answer"]["error"]


@pytest.mark.parametrize(
    "place", [{"lane": -3}, {"step": True}, {"step": 10**9}, {"step": "1"}, {"lane": {}}]
)
def test_a_place_that_is_none_is_refused_and_not_taken_for_the_first(
    service: Any, place: dict[str, object]
) -> None:
    found = waterfall_answer(service, TAB, {"run": "mine"} | place)["answer"]
    assert "counted from 0" in found["error"] and "waterfall" not in found
    assert (found["lane"], found["step"]) == (0, 0)


def test_refusals_are_translated(service: Any) -> None:
    said = waterfall_answer(service, replace(TAB, language="zh"), {"run": "mine", "step": 9})["answer"][
        "error"
    ]
    assert said == "这次运行没有这一步，因此没有计算。"


def test_a_backend_without_a_model_says_so(serviced: Callable[..., Any]) -> None:
    service = serviced(Echo())
    list(service.generate(TAB, "run", None, Request("abc", run="mine")))
    assert "No model is loaded" in waterfall_answer(service, TAB, {"run": "mine"})["answer"]["error"]


def test_an_unknown_question_gets_no_answer(service: Any, packets: Any) -> None:
    for data in (None, [], {"what": "everything"}, {"what": ["waterfall"]}, {"what": None}):
        (packet,) = packets([answered(service, data)])
        assert set(packet) == {"seq"}
    data = {"what": "waterfall", "run": "mine", "session": TAB.token}
    (packet,) = packets([answered(service, data)])
    assert packet["answer"]["computed"] == 1
