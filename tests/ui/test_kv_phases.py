"""The section "Prefill and decode": times of the session's runs apart, experiments as they grow, sentences."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest

from playground.core.control import Control
from playground.core.decoding import GREEDY
from playground.core.experiment import Conditions, OneByOne, PrefillCurve, Progressed, StepCurve, Timed
from playground.core.metrics import timing
from playground.core.peak import peak_memory
from playground.core.phases import phases
from playground.core.refusal import Refused
from playground.core.report import generation
from playground.core.request import Request
from playground.core.run import Run
from playground.core.units import shares_text
from playground.ui import kv_phases
from playground.ui.experiment_card import ExperimentCard, device_name, show_kept
from playground.ui.experiments import Done, Experiments, Progress, Waiting
from playground.ui.kv_phases import PhasesSection, build_phases, case_request, drawn_phases, run_case
from playground.ui.measures import Reach
from playground.ui.session import Tab
from playground.ui.text import LANGUAGES, Words, sections
from playground.views.measuring import conditions_line, rates_table
from tests.browser.conftest import made_run

CONDITIONS = Conditions("tests/<b>one</b>", "a chip", "float32", 2, 0.25)
CURVE = PrefillCurve(
    CONDITIONS, (Timed(32, (0.01, 0.012)), Timed(64, (0.02,))), (), None, "too_few", None, 131_000.0
)


@pytest.fixture
def section(serviced: Any, echo: Any) -> PhasesSection:
    service = serviced(echo())
    list(service.introduce(Tab("0" * 32)))
    with gr.Blocks():
        return build_phases(Words(), service, gr.Textbox(), gr.Textbox(), Experiments(service))


@pytest.fixture
def card(section: PhasesSection) -> ExperimentCard:
    return section.cards[0]


def text_of(updates: list[Any]) -> str:
    return json.dumps(updates, default=str)


def test_a_typical_chat_is_about_100_tokens_and_500_new_ones() -> None:
    asked = case_request()
    assert asked.lanes[0].max_new_tokens == 500
    assert asked.lanes[0].greedy
    assert 60 < len(asked.prompt.split()) < 90


def test_shares_are_those_of_the_report() -> None:
    """Case 31: page, command and API say the same, and neither rate holds the other phase."""
    run = made_run(80)
    drawn = drawn_phases(run, None)[0]
    found = generation(run)["timing"]
    assert drawn.prefill_share == pytest.approx(found["prefill_share"])
    assert drawn.prefill_seconds == found["prefill_seconds"] == pytest.approx(0.08)
    assert found["prefill_tokens_per_second"] == pytest.approx(4 / 0.08)
    assert found["decode_tokens_per_second"] == pytest.approx(1 / 0.03)
    assert found["time_to_first_token_seconds"] == pytest.approx(0.11)


def test_without_a_second_token_there_is_no_share() -> None:
    assert generation(made_run(1))["timing"]["prefill_share"] is None


def test_the_typical_chat_is_estimated_until_it_has_been_run() -> None:
    run, case = made_run(80), made_run(20, run="case")
    assert [one.origin for one in drawn_phases(run, None)] == ["measured", "estimated"]
    assert [one.origin for one in drawn_phases(run, case)] == ["measured", "measured"]
    assert [one.origin for one in drawn_phases(None, case)] == ["measured"]


def test_nothing_is_invented_before_the_first_run(section: PhasesSection, tab: Tab) -> None:
    line, _, rates, *figure = section.latest.now(section.service, tab)
    assert "No run yet" in line
    assert rates == ""
    assert figure[0] is None


def test_the_last_run_stands_there(section: PhasesSection, tab: Tab) -> None:
    list(section.service.generate(tab, "run", None, Request("abcdefgh", (GREEDY,))))
    line, _, rates, *figure = section.latest.now(section.service, tab)
    assert line == ""
    assert "your run" in rates
    assert [one.new_tokens for one in figure[0]] == [8]
    assert section.latest.now(section.service, Tab("f" * 32))[3] is None, "a stranger sees it"


def test_the_typical_chat_runs_here_and_is_shown_beside_the_last_run(
    section: PhasesSection, tab: Tab
) -> None:
    seen = list(run_case(section.service, section.experiments, tab, None))
    assert seen[-1].done
    _, _, rates, *figure = section.latest.now(section.service, tab)
    assert "100 + 500" in rates
    assert len(figure[0]) == 1


def test_a_warm_up_is_marked() -> None:
    """Case 32: the first run holds one-time work, and says so where its times stand."""
    text = sections("en")["phases"]
    run = made_run(8)
    assert "warm-up" not in rates_table([("a", timing(run, run.lanes[0]))], text)
    cold = timing(run, run.lanes[0])
    marked = rates_table([("a", _warmed(cold))], text)
    assert "with warm-up" in marked


def _warmed(times: Any) -> Any:
    return replace(times, warm_up=True)


def test_the_conditions_keep_the_warm_up_apart_and_escape_the_name() -> None:
    line = conditions_line(CONDITIONS, sections("en")["phases"])
    assert "tests/&lt;b&gt;one&lt;/b&gt;, fp32, a chip, CPU threads: 2" in line
    assert "Warm-up, left out: 250 ms" in line


@pytest.mark.parametrize("language", LANGUAGES)
def test_progress_says_how_far_and_how_long(card: ExperimentCard, language: str) -> None:
    line, stop, *_ = card.told(Progress(Progressed(3, 9, 512, 1.5), 12.0), language)
    assert all(part in line for part in ("3", "9", "512", "1.5 s", "12 s", "width:33.3%"))
    assert stop["visible"] is True
    assert card.told(Waiting(), language)[0] != line


def test_a_result_shows_figure_and_conditions_and_takes_the_stop_away(card: ExperimentCard) -> None:
    line, stop, conditions, value, finding, *_ = card.told(Done(CURVE), "en")
    assert line == ""
    assert stop["visible"] is False
    assert "a chip" in conditions
    assert value is CURVE
    assert "64 tokens" in finding["value"]


def test_the_device_is_called_as_in_the_chip() -> None:
    assert device_name("CPU, 2 cores", "zh") == "CPU，2 核"
    assert device_name("NVIDIA H200", "zh") == "NVIDIA H200"


def test_a_stop_without_a_result_leaves_the_last_one(card: ExperimentCard) -> None:
    line, _, conditions, *figure = card.told(Done(None), "en")
    assert line == ""
    assert conditions == gr.skip()
    assert figure == [gr.skip()] * len(card.box.outputs)


def test_every_experiment_of_the_section_has_its_own_figure(section: PhasesSection) -> None:
    steps = StepCurve(CONDITIONS, (Timed(32, (0.01,)), Timed(512, (0.012,))), ())
    singly = OneByOne(CONDITIONS, 32, (0.05,), (0.9,), 1e-5, True, 1, 32)
    peak = peak_memory(
        CONDITIONS, 64, weights_bytes=1000, vocabulary=50, kv_bytes=64, state_bytes=0, total_bytes=2000
    )
    for card, result in zip(section.cards, (CURVE, steps, singly, peak), strict=True):
        finding = card.told(Done(result), "en")[4]["value"]
        assert '<p class="finding">' in finding


def test_a_model_that_is_not_here_is_refused_in_a_sentence(section: PhasesSection, tab: Tab) -> None:
    """An echo has no weights: nothing is measured, and the page says what to do."""
    with pytest.raises(Refused, match="cannot be measured from here") as refused:
        list(section.experiments.run(tab, "prefill", None, Reach().prefill))
    line, *_ = section.cards[0].refused(refused.value, "zh")
    assert 'role="alert"' in line
    assert "无法从这里测量" in line


def test_no_model_is_a_sentence_too(serviced: Any, tab: Tab) -> None:
    service = serviced(loader=lambda name, report: threading.Event().wait(60))
    with pytest.raises(Refused, match="No model is loaded yet"):
        next(run_case(service, Experiments(service), tab, None))


def test_what_the_session_measured_comes_back(section: PhasesSection, tab: Tab) -> None:
    def measure(backend: Any, control: Control) -> Iterator[Any]:
        yield CURVE

    list(section.experiments.run(tab, section.cards[0].name, None, measure))
    shown = show_kept(section.cards, section.experiments)
    asked_by = json.dumps({"session": tab.token, "language": "zh"})
    updates = shown(asked_by)
    assert updates[3] is CURVE
    assert "测量条件" in updates[2]
    assert shown(json.dumps({"session": "f" * 32}))[3] == gr.skip()


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.0603, ("6 %", "94 %")), (0.004, ("0.4 %", "99.6 %")), (0.00001, ("0.1 %", "99.9 %")),
     (0.5, ("50 %", "50 %")), (0.97, ("97 %", "3 %"))],
)  # fmt: skip
def test_two_shares_make_a_hundred(share: float, said: tuple[str, str]) -> None:
    assert shares_text(share) == said


def test_phases_of_lanes_are_those_of_the_longest() -> None:
    run: Run = made_run(30, lanes=3)
    found = phases(run)
    assert found.decode is not None
    assert found.decode.tokens == 29
    assert len(drawn_phases(run, None)) == 2


def test_the_case_is_a_preset_of_the_page() -> None:
    assert kv_phases.CASE in {preset.name for preset in kv_phases.presets.prompts()}
