"""The section "Prefill and decode" inside the tab KV cache: the two phases of a run, and experiments on each.

Layout and wiring in one place. Knows the shared service, and nothing of how a measurement is made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from playground.backends.hosted import HostedRun
from playground.backends.protocol import BackendError
from playground.core.decoding import GREEDY
from playground.core.metrics import timing
from playground.core.phases import phases
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.run import Run
from playground.ui import presets
from playground.ui.experiment_card import (
    MARKUP,
    ExperimentCard,
    experiment_card,
    follow_all,
    heading,
    wire_experiment,
)
from playground.ui.experiments import Experiments
from playground.ui.figure import FigureBox, figure
from playground.ui.kv_memory import latest_run
from playground.ui.measures import Reach
from playground.ui.sentences import translated
from playground.ui.session import Tab, read_tab
from playground.ui.streaming import Service
from playground.ui.tab_playground import LIVE, PRIVATE, WHO, model_name, read_request
from playground.ui.text import Words, sections
from playground.views.figures.one_by_one import ONE_BY_ONE
from playground.views.figures.peak import PEAK
from playground.views.figures.phases import PHASES, Phases, article_case
from playground.views.figures.prefill import PREFILL
from playground.views.figures.steps import STEPS
from playground.views.measuring import progress_line, rates_table, refused_line, said_line

PLACE = "case"
CASE = "hundred"
"""The prompt of the article's case, a preset: about 100 tokens, and 500 to be written."""


@dataclass(frozen=True, slots=True)
class PhasesSection:
    """What the rest of the page needs of this section: call `follow` once the page is laid out."""

    latest: "Latest"
    cards: list[ExperimentCard]
    experiments: Experiments
    service: Service

    def follow(self, shown: tuple[Any, ...], language: Any, who: Any) -> None:
        """`shown`: what happens when the section comes into view; `language`: when the language changes."""
        follow_all(self.cards, self.experiments, shown, language, who)
        for event in (*shown, language):
            event(
                lambda by: self.latest.now(self.service, read_tab(by)),
                who, self.latest.outputs, js=WHO, queue=False, **PRIVATE,
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Latest:
    """The card of the last run: its two phases as shares, and its times."""

    start: Any
    stop: Any
    line: Any
    box: FigureBox[Any]
    rates: Any

    @property
    def outputs(self) -> list[Any]:
        """What changes."""
        return [self.line, self.stop, self.rates, *self.box.outputs]

    def now(self, service: Service, tab: Tab) -> list[Any]:
        """The session's latest run, and the typical chat: measured where it was run, else estimated."""
        run, case = last_run(service, tab), case_run(service, tab)
        text = sections(tab.language)["phases"]
        named = [(text["your_run"], run), (text["case_run"], case)]
        rows = [(name, timing(one, one.lanes[0])) for name, one in named if one is not None]
        if not rows:
            nothing = [str(said_line(text["none"])), gr.update(visible=False), ""]
            return [*nothing, *self.box.empty(tab.language)]
        drawn = self.box.show(drawn_phases(run, case), tab.language)
        return ["", gr.update(visible=False), str(rates_table(rows, text)), *drawn]

    def waiting(self, sentence: Any, stoppable: bool) -> list[Any]:
        """A line in the place of progress; the rest stays."""
        return [str(sentence), gr.update(visible=stoppable), gr.skip(), *[gr.skip()] * len(self.box.outputs)]


def build_phases(
    words: Words, service: Service, who: Any, model: Any, experiments: Experiments, reach: Reach | None = None
) -> PhasesSection:
    """Build the section inside the current `gr.Tab`; it measures the model of the Playground.

    `reach` is how far its experiments go.
    """
    reach = reach or Reach()
    with gr.Column(elem_id="phases", elem_classes=["section"]):
        latest = _latest(words)
        with gr.Row(elem_classes=["experiments"]):
            prefill = experiment_card(words, "prefill", PREFILL, "phases.prefill")
            steps = experiment_card(words, "steps", STEPS, "phases.steps")
        one = experiment_card(words, "one-by-one", ONE_BY_ONE, "phases.one", alone=True)
        peak = experiment_card(words, "peak", PEAK, "phases.peak", alone=True)
    cards = [prefill, steps, one, peak]
    wire_experiment(prefill, experiments, model, who, reach.prefill, reach.prefill_work())
    wire_experiment(steps, experiments, model, who, reach.steps)
    wire_experiment(one, experiments, model, who, reach.one_by_one)
    wire_experiment(peak, experiments, model, who, reach.peak)
    section = PhasesSection(latest, cards, experiments, service)
    latest.start.click(_case(section), [model, who], latest.outputs, js=WHO, **LIVE)
    latest.stop.click(lambda by: service.stop(read_tab(by), PLACE), who, None, js=WHO, queue=False, **PRIVATE)
    return section


def _latest(words: Words) -> Latest:
    with gr.Column(elem_classes=["card", "experiment"], elem_id="latest-run", min_width=0):
        heading(words, "phases.last_title", "phases.last_note")
        box = figure(words, PHASES, "figure-phases")
        rates = gr.HTML("", elem_classes=["measure-rates"], **MARKUP)
        with gr.Row(elem_classes=["measure"]):
            start = words.make(
                gr.Button, {"value": "phases.case"}, size="sm", elem_classes=["quiet-button"], min_width=0,
                elem_id="run-case",
            )  # fmt: skip
            stop = words.make(
                gr.Button, {"value": "phases.stop"}, size="sm", visible=False,
                elem_classes=["quiet-button", "measure-stop"], min_width=0,
            )  # fmt: skip
        line = gr.HTML("", elem_classes=["measure-line"], **MARKUP)
    return Latest(start, stop, line, box, rates)


def case_run(service: Service, tab: Tab) -> Run | None:
    """The session's run of the typical chat, once it has tokens."""
    hosted = service.runs.latest(tab.key(PLACE)) if tab.token else None
    return _with_tokens(hosted)


def last_run(service: Service, tab: Tab) -> Run | None:
    """The session's latest run on the Playground or in Compare, once it has tokens."""
    return _with_tokens(latest_run(service, tab))


def _with_tokens(hosted: Any) -> Run | None:
    run = hosted.run if isinstance(hosted, HostedRun) else None
    return run if run is not None and any(lane.steps for lane in run.lanes) else None


def drawn_phases(run: Run | None, case: Run | None) -> tuple[Phases, ...]:
    """What the figure shows: the run, and the typical chat as it was measured or as the run's rates make it."""
    found = [_phases(one) for one in (run, case) if one is not None]
    if case is None and run is not None:
        found.append(article_case(timing(run, run.lanes[0])))
    return tuple(one for one in found if one is not None)


def _phases(run: Run) -> Phases | None:
    found = phases(run)
    if found.prefill is None:
        return None
    decode = found.decode.seconds if found.decode else 0.0
    steps = max(len(lane.steps) for lane in run.lanes)
    return Phases(len(run.prompt_ids), steps, found.prefill.seconds, decode)


def case_request() -> Request:
    """The typical chat of the article: about 100 tokens read, 500 written, greedily."""
    preset = next(preset for preset in presets.prompts() if preset.name == CASE)
    lane = replace(GREEDY, max_new_tokens=preset.max_new_tokens or GREEDY.max_new_tokens)
    return replace(read_request(preset.text, preset.mode, None, (lane,)), top_n=1)


def run_case(service: Service, experiments: Experiments, tab: Tab, model: str | None) -> Iterator[Run]:
    """The run of `case_request` as it grows; raises `Refused`. Ends early when a later wish came."""
    key = tab.key(PLACE)
    backend = experiments.backend(tab, model)
    hosted = service.begin(key, service.wish(key, tab.wish), backend, case_request())
    if hosted is None:
        return
    run = hosted.run
    for _ in hosted.follow(interval_seconds=0.3):
        if service.runs.latest(key) is not hosted:
            return
        yield run
    if run.started is None and run.failed is not None:
        raise BackendError(run.failed.message)


def _case(section: PhasesSection) -> Callable[..., Iterator[list[Any]]]:
    latest, service = section.latest, section.service

    def case(model: Any, asked_by: Any) -> Iterator[list[Any]]:
        tab = read_tab(asked_by)
        text = sections(tab.language)["phases"]
        try:
            for run in run_case(service, section.experiments, tab, model_name(model)):
                yield latest.waiting(_case_line(run, text), stoppable=True)
        except Refused as error:
            yield latest.waiting(refused_line(translated(str(error), tab.language)), stoppable=False)
            return
        yield latest.now(service, tab)

    return case


def _case_line(run: Run, text: dict[str, str]) -> Any:
    lane = run.lanes[0] if run.lanes else None
    done = len(lane.steps) if lane else 0
    total = lane.decoding.max_new_tokens if lane else 0
    said = (
        text["case_progress"].format(done=f"{done:,}", total=f"{total:,}") if done else text["case_reading"]
    )
    return progress_line(said, done / total if total else None)
