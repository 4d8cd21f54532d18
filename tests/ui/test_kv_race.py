"""The section of the race: what it asks for, what it is sent, and counts that need no model."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest

from playground.backends.protocol import BackendError
from playground.core.control import Control
from playground.core.decoding import GREEDY, InvalidSetting
from playground.core.experiment import Conditions, KvRecheck, Progressed
from playground.core.race import WITH, WITHOUT, Item, Race, Ticked, follow, result, work
from playground.core.request import Request
from playground.ui.experiments import Experiments
from playground.ui.kv_race import (
    COUNTED_LIMIT,
    PLACE,
    build_race,
    counted,
    missing,
    own_race,
    read_lane,
    work_of,
)
from playground.ui.kv_recheck import NAME, found_markup, measure, said
from playground.ui.session import Tab
from playground.ui.streaming import Service
from playground.ui.text import Words

ASKED = Request("abcd", (replace(GREEDY, max_new_tokens=4),))


@pytest.fixture
def racer(echo: Any) -> type[Any]:
    """`racer()`: an Echo that also races; the prompt “no” is refused."""

    class Racer(echo):  # type: ignore[misc]
        def race(self, request: Request, control: Control) -> Iterator[Item]:
            if request.prompt == "no":
                raise BackendError("This model does not run without its KV cache; race another model.")
            return self._items(request, control)

        def _items(self, request: Request, control: Control) -> Iterator[Item]:
            race = Race()
            sides = [self.stream(replace(request, run=request.run + e), control) for e in (WITH, WITHOUT)]
            for step, pair in enumerate(zip(*sides, strict=True), start=-2):
                ticks = [Ticked(step, True, 0.5)] if 0 <= step < len(request.prompt) else []
                for item in [*pair, *ticks]:
                    follow(race, item)
                    yield item
            yield result(race)

    return Racer


def kinds(packets: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for packet in packets for event in packet.get("events", ())]


def test_a_race_arrives_whole_with_its_work(serviced: Any, racer: Any, packets: Any, tab: Tab) -> None:
    sent = packets(serviced(racer()).race(tab, PLACE, None, ASKED))
    pair = ["stepped", "stepped", "ticked"]
    assert kinds(sent) == [*["started"] * 2, *["prefilled"] * 2, *pair * 4, *["finished"] * 2, "raced"]
    steps = [event for packet in sent for event in packet.get("events", ()) if event["event"] == "stepped"]
    assert steps[-1]["work"]["kv_computed"] == work(4, 4, cached=False).kv_computed
    assert len({packet["run"] for packet in sent if "run" in packet}) == 1


def test_a_refusal_is_one_sentence_and_no_race(serviced: Any, racer: Any, packets: Any, tab: Tab) -> None:
    sent = packets(serviced(racer()).race(tab, PLACE, None, replace(ASKED, prompt="no")))
    assert "without its KV cache" in sent[-1]["error"]
    assert kinds(sent) == []


def test_a_model_that_cannot_race_says_so(serviced: Any, echo: Any, packets: Any, tab: Tab) -> None:
    assert "cannot run a race" in packets(serviced(echo()).race(tab, PLACE, None, ASKED))[-1]["error"]


def test_a_page_without_a_token_runs_nothing(serviced: Any, racer: Any, packets: Any) -> None:
    backend = racer()
    assert "reload" in packets(serviced(backend).race(Tab(), PLACE, None, ASKED))[-1]["error"]
    assert backend.forwards == 0


def test_stop_ends_the_race(serviced: Any, racer: Any, packets: Any, tab: Tab) -> None:
    service = serviced(racer(pause_seconds=0.05))
    stream = service.race(tab, PLACE, None, Request("abcdefgh" * 4, (GREEDY,)))
    early: list[str] = []
    while kinds(packets(early)).count("ticked") < 2:
        early.append(next(stream))
    service.stop(tab, PLACE)
    sent = packets([*early, *stream])
    assert kinds(sent)[-1] == "raced"
    assert kinds(sent).count("ticked") < 32
    reasons = {e["reason"] for p in sent for e in p.get("events", ()) if e["event"] == "finished"}
    assert reasons == {"cancelled"}


def test_a_reload_gets_its_own_race_and_nobody_elses(
    serviced: Any, racer: Any, packets: Any, tab: Tab
) -> None:
    service = serviced(racer())
    sent = packets(service.race(tab, PLACE, None, ASKED))
    run = sent[-1]["run"]
    assert own_race(service, tab, run) is not None
    assert own_race(service, Tab("f" * 32), run) is None
    assert own_race(service, Tab(), run) is None
    again = json.loads(missing(service, {"session": tab.token, "run": run, "from": 3}))
    assert (again["first"], kinds([again])) == (3, kinds(sent)[3:])
    assert json.loads(missing(service, {"session": "f" * 32, "run": run, "from": 0}))["events"] == []


def test_a_place_of_runs_does_not_hand_out_a_race(serviced: Any, racer: Any, packets: Any, tab: Tab) -> None:
    service = serviced(racer())
    sent = packets(service.generate(tab, PLACE, None, ASKED))
    assert own_race(service, tab, sent[-1]["run"]) is None


@pytest.mark.parametrize("count", [0, -1, 513, 1.5, None, "x", True, float("nan")])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_new_tokens_that_the_page_does_not_offer(count: Any, language: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        read_lane(count, language)
    assert str(refused.value)


def test_a_race_is_greedy() -> None:
    assert read_lane(64.0, "en") == replace(GREEDY, max_new_tokens=64)


@pytest.mark.alone
def test_the_articles_figures_come_at_once(tab: Tab) -> None:
    who = json.dumps({"session": tab.token, "language": "en"})
    began = time.perf_counter()
    packet = json.loads(counted(1, 1000, who))
    assert time.perf_counter() - began < 0.1
    assert packet["work"]["uncached"]["attention_dot_products_computed"] == 167_167_000
    assert packet["error"] == ""


@pytest.mark.parametrize(("p", "n"), [(0, 5), (1, -1), (1, COUNTED_LIMIT + 1), (None, 3), (1, 2.5), ("a", 1)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_lengths_that_cannot_be_counted_are_a_sentence(p: Any, n: Any, language: str) -> None:
    sentence = json.loads(counted(p, n, json.dumps({"language": language})))["error"]
    assert sentence.endswith((".", "。"))
    assert ("。" in sentence) == (language == "zh")


def test_the_largest_counts_are_exact_on_the_page() -> None:
    """A page's numbers are doubles: beyond 2 to the 53 they would be rounded."""
    for p, n in ((1, COUNTED_LIMIT), (COUNTED_LIMIT, 1), (COUNTED_LIMIT // 2, COUNTED_LIMIT // 2)):
        sides = work_of(p, n, "en")["work"]
        assert max(sides["uncached"].values()) < 2**53


CONDITIONS = Conditions("tests/<none>", "CPU, 2 cores", "float32", 1, 0.5)


@pytest.mark.parametrize(
    ("differences", "sentence", "said_en"),
    [((0.0, 0.0), "recheck_equal", "the same to the last bit"),
     ((0.0, 0.000031), "recheck_rounding", "differ by at most 0.000031 where the largest value is 12"),
     ((3.5, 0.0), "recheck_other", "differ by up to 3.5")],
)  # fmt: skip
@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_was_computed_anew_is_a_sentence(
    differences: tuple[float, ...], sentence: str, said_en: str, language: str
) -> None:
    found = KvRecheck(CONDITIONS, 64, 2, differences, 12.0, sentence)
    markup = found_markup(found, language)
    assert "64" in markup
    assert "tests/&lt;none&gt;" in markup
    assert markup.count("<tr>") == 3
    assert (said_en in markup) == (language == "en")


class Measuring:
    """A backend that has one experiment, and counts how it was asked for it."""

    asked = ""

    def experiment(self, name: str, control: Control, **options: Any) -> Iterator[Any]:
        self.asked = name
        yield Progressed(1, 2)
        yield KvRecheck(CONDITIONS, 64, 2, (0.0, 0.0), 12.0, "recheck_equal")

    def nothing(self) -> None:
        """The rest of what such a backend knows is not asked for here."""

    cost_shape = cache_spec = rates = free_bytes = nothing


def test_computing_anew_is_an_experiment_of_the_session(serviced: Any, tab: Tab) -> None:
    backend = Measuring()
    service = serviced(backend)
    list(service.models.ready())
    experiments = Experiments(service)
    lines = [said(told, "en") for told in experiments.run(tab, NAME, None, measure)]
    assert "1 of 2" in lines[0]
    assert "They did not change" in lines[-1]
    assert backend.asked == "recheck"
    assert experiments.kept(tab, NAME).layers == 2


def test_a_model_elsewhere_has_nothing_to_compute_anew(echo: Any) -> None:
    with pytest.raises(BackendError, match="does not run here"):
        list(measure(echo(), Control()))


def test_the_section_is_built_in_any_page(serviced: Any, racer: Any) -> None:
    service: Service = serviced(racer())
    with gr.Blocks():
        section = build_race(Words(), service, gr.Textbox(), gr.Textbox())
    assert section.prompt.value == "What is gravity?"
    assert section.new_tokens.value == 64
