"""One experiment on the page: what it does, its button, how far it is, its figure and what it ran on.

Every experiment of the tab KV cache is this component. Knows no particular experiment.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
from markupsafe import Markup

from playground.core.refusal import Refused
from playground.core.units import seconds_text
from playground.ui.experiments import Done, Experiments, Measure, Progress, Told
from playground.ui.figure import FigureBox, figure
from playground.ui.sentences import translated
from playground.ui.session import read_tab
from playground.ui.tab_playground import LIVE, PRIVATE, WHO, model_name
from playground.ui.text import Say, Words, say, sections
from playground.views.cards import heading as title_of
from playground.views.figures.chart import Chart
from playground.views.measuring import conditions_line, progress_line, refused_line

MARKUP: dict[str, Any] = {"apply_default_css": False}
SECTION = "phases"


@dataclass(frozen=True, slots=True)
class ExperimentCard:
    """The components of one experiment. A handler fills `outputs` with what `told` answers."""

    name: str
    start: Any
    stop: Any
    line: Any
    box: FigureBox[Any]
    conditions: Any

    @property
    def outputs(self) -> list[Any]:
        """What changes while it runs."""
        return [self.line, self.stop, self.conditions, *self.box.outputs]

    def told(self, told: Told, language: str) -> list[Any]:
        """What `outputs` get for one message of the experiment."""
        if isinstance(told, Done):
            return self._ended(told.result, language)
        skipped = [gr.skip()] * len(self.box.outputs)
        return [str(_line(told, language)), gr.update(visible=True), gr.skip(), *skipped]

    def refused(self, error: Refused, language: str) -> list[Any]:
        """The sentence in the place of the progress; the last result stays."""
        sentence = refused_line(translated(str(error), language))
        return [str(sentence), gr.update(visible=False), gr.skip(), *[gr.skip()] * len(self.box.outputs)]

    def shown(self, result: Any, language: str) -> list[Any]:
        """A result as it stands, nothing under way."""
        if result is None:
            return [gr.skip()] * len(self.outputs)
        found = replace(result.conditions, device=device_name(result.conditions.device, language))
        about = conditions_line(found, sections(language)[SECTION])
        return ["", gr.update(visible=False), str(about), *self.box.show(result, language)]

    def _ended(self, result: Any, language: str) -> list[Any]:
        if result is not None:
            return self.shown(result, language)
        skipped = [gr.skip()] * (1 + len(self.box.outputs))
        return ["", gr.update(visible=False), *skipped]


def experiment_card(
    words: Words, name: str, chart: Chart[Any], key: str, alone: bool = False
) -> ExperimentCard:
    """A card in the current layout; its texts are `<key>_title`, `<key>_note` and `<key>` (the button).

    `alone` in its row it has the words left and the figure right.
    """
    classes = ["card", "experiment", *["alone"] * alone]
    with gr.Column(elem_classes=classes, elem_id=f"experiment-{name}", min_width=0):
        heading(words, f"{key}_title", f"{key}_note")
        with gr.Row(elem_classes=["measure"]):
            start = words.make(
                gr.Button, {"value": key}, size="sm", elem_classes=["quiet-button"], min_width=0
            )
            stop = words.make(
                gr.Button, {"value": f"{SECTION}.stop"}, size="sm", visible=False,
                elem_classes=["quiet-button", "measure-stop"], min_width=0,
            )  # fmt: skip
        line = gr.HTML("", elem_classes=["measure-line"], **MARKUP)
        box = figure(words, chart, f"figure-{name}")
        conditions = gr.HTML("", elem_classes=["measure-conditions"], **MARKUP)
    return ExperimentCard(name, start, stop, line, box, conditions)


def device_name(name: str, language: str) -> str:
    """The device as the page's chip calls it."""
    cores = re.fullmatch(r"CPU, (\d+) cores", name)
    return say(language, "page.cores", n=cores[1]) if cores else name


def heading(words: Words, title: str, note: str) -> None:
    """What a card is about, and one sentence on it."""

    def written(speak: Say) -> str:
        return str(title_of(speak(title)) + Markup('<p class="card-note">{}</p>').format(speak(note)))

    words.make(gr.HTML, {"value": written}, elem_classes=["card-head"], **MARKUP)


def wire_experiment(
    card: ExperimentCard, experiments: Experiments, model: Any, who: Any, measure: Measure,
    work: Sequence[int] = (),
) -> None:  # fmt: skip
    """The card's buttons: `measure` with the model of the Playground."""

    def go(name: Any, asked_by: Any) -> Iterator[list[Any]]:
        tab = read_tab(asked_by)
        try:
            for told in experiments.run(tab, card.name, model_name(name), measure, work):
                yield card.told(told, tab.language)
        except Refused as error:
            yield card.refused(error, tab.language)

    card.start.click(go, [model, who], card.outputs, js=WHO, **LIVE)
    card.stop.click(lambda by: experiments.stop(read_tab(by)), who, None, js=WHO, queue=False, **PRIVATE)


def show_kept(cards: list[ExperimentCard], experiments: Experiments) -> Callable[[Any], list[Any]]:
    """A handler for when the section comes into view: what the session measured before."""

    def shown(asked_by: Any) -> list[Any]:
        tab = read_tab(asked_by)
        return [
            update for card in cards for update in card.shown(experiments.kept(tab, card.name), tab.language)
        ]

    return shown


def follow_all(
    cards: list[ExperimentCard], experiments: Experiments, shown: tuple[Any, ...], language: Any, who: Any
) -> None:
    """Show the session's results whenever the section comes into view or the language changes."""
    outputs = [component for card in cards for component in card.outputs]
    for event in (*shown, language):
        event(show_kept(cards, experiments), who, outputs, js=WHO, queue=False, **PRIVATE)


def _line(told: Told, language: str) -> Markup:
    text = sections(language)[SECTION]
    if not isinstance(told, Progress):
        return progress_line(text["waiting"], None)
    latest = told.latest
    said = [text["progress"].format(done=latest.done, total=latest.total)]
    if latest.n is not None and latest.seconds is not None:
        said.append(text["progress_latest"].format(n=f"{latest.n:,}", time=seconds_text(latest.seconds)))
    if told.left_seconds is not None and latest.done < latest.total:
        said.append(text["left"].format(time=seconds_text(told.left_seconds)))
    return progress_line(" · ".join(said), latest.done / max(1, latest.total))
