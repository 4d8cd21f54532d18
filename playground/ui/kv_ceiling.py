"""The section "What decode waits for" inside the tab KV cache: bytes, operations, the roof and the verdict.

Layout and wiring in one place. Knows the shared service, and nothing of how a measurement is made.
"""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.ui.experiment_card import (
    MARKUP,
    ExperimentCard,
    experiment_card,
    follow_all,
    heading,
    wire_experiment,
)
from playground.ui.experiments import Experiments
from playground.ui.kv_phases import last_run
from playground.ui.measures import Reach
from playground.ui.session import Tab, read_tab
from playground.ui.streaming import Service
from playground.ui.tab_playground import PRIVATE, WHO
from playground.ui.text import Words, sections
from playground.ui.verdicts import judged
from playground.views.figures.lanes import LANES
from playground.views.figures.roofline import ROOFLINE
from playground.views.measuring import said_line
from playground.views.needs import needs


@dataclass(frozen=True, slots=True)
class CeilingSection:
    """What the rest of the page needs of this section: call `follow` once the page is laid out."""

    run: Any
    cards: list[ExperimentCard]
    experiments: Experiments

    def follow(self, shown: tuple[Any, ...], language: Any, who: Any) -> None:
        """`shown`: what happens when the section comes into view; `language`: when the language changes."""
        follow_all(self.cards, self.experiments, shown, language, who)
        for event in (*shown, language):
            event(self.now, who, self.run, js=WHO, queue=False, **PRIVATE)

    def now(self, asked_by: Any) -> str:
        """What the session's latest run needed, and what it waited for."""
        return last_run_needs(self.experiments.service, read_tab(asked_by))


def build_ceiling(
    words: Words, service: Service, who: Any, model: Any, experiments: Experiments, reach: Reach | None = None
) -> CeilingSection:
    """Build the section inside the current `gr.Tab`; it measures the model of the Playground.

    `reach` is how far its experiments go.
    """
    reach = reach or Reach()
    with gr.Column(elem_id="ceiling", elem_classes=["section"]):
        with gr.Column(elem_classes=["card", "experiment"], elem_id="run-needs", min_width=0):
            heading(words, "ceiling.run_title", "ceiling.run_note")
            run = gr.HTML("", elem_classes=["run-needs"], **MARKUP)
        with gr.Row(elem_classes=["experiments"]):
            roofline = experiment_card(words, "roofline", ROOFLINE, "ceiling.roofline")
            lanes = experiment_card(words, "lanes", LANES, "ceiling.lanes")
    wire_experiment(roofline, experiments, model, who, reach.roofline)
    wire_experiment(lanes, experiments, model, who, reach.several)
    return CeilingSection(run, [roofline, lanes], experiments)


def last_run_needs(service: Service, tab: Tab) -> str:
    """The table of the session's latest run as markup; a sentence where there is none."""
    text = sections(tab.language)["ceiling"]
    run = last_run(service, tab)
    if run is None:
        return str(said_line(text["none"]))
    return str(needs(*judged(service.models, run), text))
