"""The section "What decode waits for": arithmetic beside measured times, and a verdict that names its limit."""

from dataclasses import replace
from typing import Any

import gradio as gr
import pytest

from playground.core.cost import Attention, Device, Shape, decode_cost, prefill_cost
from playground.core.decoding import GREEDY
from playground.core.experiment import Conditions, LaneCurve, Timed
from playground.core.kv import CacheSpec, LayerSpec
from playground.core.phases import Phases, phases
from playground.core.request import Request
from playground.ui.experiments import Done, Experiments
from playground.ui.kv_ceiling import CeilingSection, build_ceiling, last_run_needs
from playground.ui.models import Models
from playground.ui.session import Tab
from playground.ui.text import LANGUAGES, Words, sections
from playground.ui.verdicts import judged, verdict_packet
from playground.views.needs import needs, verdict_sentence
from tests.browser.conftest import made_run

SPEC = CacheSpec(tuple(LayerSpec("full", 3, 64) for _ in range(30)), 9, "float32")
SHAPE = Shape(106_000_000, 28_000_000, 4, tuple(Attention(4 * 9 * 64) for _ in range(30)), SPEC)
FAST, SLOW = Device(26e9, 120e9), Device(1e12, 1e13)


@pytest.fixture
def section(serviced: Any, echo: Any) -> CeilingSection:
    service = serviced(echo())
    list(service.introduce(Tab("0" * 32)))
    with gr.Blocks():
        return build_ceiling(Words(), service, gr.Textbox(), gr.Textbox(), Experiments(service))


def said(device: Device | None, shape: Shape | None = SHAPE, language: str = "en") -> str:
    return str(needs(phases(made_run(40), shape, device), device, sections(language)["ceiling"]))


def test_bytes_and_operations_are_the_arithmetic_of_the_cost() -> None:
    found = phases(made_run(40), SHAPE, FAST)
    assert found.decode is not None and found.prefill is not None
    assert found.prefill.cost == prefill_cost(SHAPE, 4)
    assert found.decode.cost is not None
    assert found.decode.cost.weight_bytes == decode_cost(SHAPE, 20).weight_bytes == 536_000_000
    assert "511 MiB" in said(FAST)


def test_a_step_near_the_bandwidth_waits_for_memory() -> None:
    markup = said(FAST)
    assert "Decode waits for <b>memory</b>" in markup
    assert "26 GB/s measured here" in markup
    assert "share of bandwidth (MBU) <small>estimated</small>" in markup


def test_a_small_model_on_a_big_device_waits_for_overhead() -> None:
    markup = said(SLOW)
    assert "Decode waits for <b>overhead</b>, neither memory nor arithmetic" in markup


def test_a_step_that_computes_all_the_time_waits_for_arithmetic() -> None:
    assert "Decode waits for <b>arithmetic</b>" in said(Device(1e13, 10e9))


def test_without_a_device_no_ceiling_is_claimed() -> None:
    markup = said(None)
    assert "has been measured" in markup
    assert "waits for <b>" not in markup
    assert markup.count("unknown") >= 6


def test_without_a_shape_nothing_is_counted() -> None:
    assert "not known" in said(FAST, None)


def test_a_run_that_ended_in_its_prefill_is_judged_by_it() -> None:
    found = phases(made_run(1), SHAPE, FAST)
    assert found.decode is None
    assert verdict_sentence(found, FAST, sections("en")["ceiling"]).startswith("The prefill waits for")
    assert "a decode step" not in needs(found, FAST, sections("en")["ceiling"])


def test_a_share_is_never_above_the_whole() -> None:
    run = phases(made_run(40), SHAPE, Device(1e9, 1e15))
    assert run.decode is not None and run.decode.verdict is not None
    assert run.decode.verdict.share > 1
    told = verdict_sentence(run, Device(1e9, 1e15), sections("en")["ceiling"])
    assert "reaches **100 %**" in told
    assert "the machine was busy when they were measured" in told
    assert "the machine was busy" not in said(FAST)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_row_says_where_it_comes_from(language: str) -> None:
    text = sections(language)["ceiling"]
    markup = said(FAST, language=language)
    assert markup.count(f"<small>{text['computed']}</small>") == 4
    assert markup.count(f"<small>{text['measured']}</small>") == 1
    assert markup.count(f"<small>{text['estimated']}</small>") == 4


def test_nothing_of_a_run_that_has_not_begun() -> None:
    assert (
        verdict_sentence(Phases(None, None), FAST, sections("en")["ceiling"])
        == (sections("en")["ceiling"]["no_shape"])
    )


def test_before_the_first_run_there_is_a_sentence(section: CeilingSection, tab: Tab) -> None:
    assert "No run yet" in last_run_needs(section.experiments.service, tab)


def test_a_run_of_a_model_elsewhere_has_times_and_no_arithmetic(section: CeilingSection, tab: Tab) -> None:
    service = section.experiments.service
    list(service.generate(tab, "run", None, Request("abcdefgh", (GREEDY,))))
    markup = last_run_needs(service, tab)
    assert "not known" in markup
    assert "prefill of 8 tokens" in markup


def test_no_verdict_is_sent_where_none_can_be_told(section: CeilingSection, tab: Tab) -> None:
    service = section.experiments.service
    list(service.generate(tab, "run", None, Request("abcdefgh", (GREEDY,))))
    run = service.runs.latest(tab.key("run")).run
    assert verdict_packet(service.models, run) is None
    assert judged(service.models, run)[1] is None


class _Costed:
    """What `verdicts` sees of a backend whose model is here."""

    def __init__(self, facts: Any) -> None:
        self._facts = facts
        self.measured = 0

    def facts(self) -> Any:
        return self._facts

    def cost_shape(self) -> Shape:
        return SHAPE

    def cache_spec(self) -> CacheSpec:
        return SPEC

    def rates(self, *, measure: bool = True) -> Device | None:
        self.measured += measure
        return FAST if self.measured else None

    def experiment(self, name: str, control: Any, **options: Any) -> Any:
        return iter(())

    def free_bytes(self) -> int:
        return 2**30


def _made() -> tuple[Any, Any]:
    run = made_run(40)
    assert run.started is not None
    return run, run.started.model


def test_the_verdict_of_a_run_reaches_the_stage() -> None:
    run, facts = _made()
    packet = verdict_packet(_loaded(_Costed(facts)), run)
    assert packet is not None
    assert (packet["run"], packet["first"], packet["events"]) == (run.id, len(run.events), [])
    assert packet["cost"]["limit"] == "bandwidth"
    assert packet["cost"]["step_seconds"] == pytest.approx(0.03)


def test_the_device_is_measured_for_a_verdict_and_not_for_a_look() -> None:
    run, facts = _made()
    backend = _Costed(facts)
    found, device = judged(_loaded(backend), run)
    assert device is None and found.decode is not None and found.decode.cost is not None
    assert verdict_packet(_loaded(backend), run) is not None
    assert judged(_loaded(backend), run)[1] is FAST
    assert backend.measured == 1


def test_a_device_that_cannot_be_measured_costs_the_run_nothing() -> None:
    run, facts = _made()

    class Broken(_Costed):
        def rates(self, *, measure: bool = True) -> Device | None:
            raise MemoryError

    assert verdict_packet(_loaded(Broken(facts)), run) is None


def test_another_model_of_the_same_name_does_not_judge_the_run() -> None:
    run, facts = _made()
    assert verdict_packet(_loaded(_Costed(replace(facts, dtype="bfloat16"))), run) is None


def _loaded(backend: Any) -> Models:
    """The backend there, under another name than its facts give."""
    models = Models(lambda name, report: backend, "asked/for")
    for _ in models.ready():
        pass
    return models


def test_lanes_say_what_they_give(section: CeilingSection) -> None:
    conditions = Conditions("tests/one", "a chip", "float32", 2, 0.25)
    curve = LaneCurve(conditions, 64, (Timed(1, (0.03,)), Timed(4, (0.04,))), ())
    finding = section.cards[1].told(Done(curve), "en")[4]["value"]
    assert "3" in finding and "<b>" in finding
