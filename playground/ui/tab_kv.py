"""The tab KV cache: what memory and time a text costs, in sections behind a quiet navigation.

Each section is a file of its own and works without the others. Knows the shared service, and nothing of
what a section shows.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import gradio as gr

from playground.core.race import Race
from playground.ui.experiments import Experiments
from playground.ui.kv_calculator import build_calculator
from playground.ui.kv_ceiling import build_ceiling
from playground.ui.kv_memory import build_memory
from playground.ui.kv_phases import build_phases
from playground.ui.kv_race import build_race
from playground.ui.streaming import Service
from playground.ui.text import Words


class Section(Protocol):
    """A section whose contents are said by the server: anew when it comes into view, or in another language."""

    def follow(self, shown: tuple[Any, ...], language: Any, who: Any) -> None:
        """`shown`: listeners of the section coming into view; `language`: the `click` of that button."""


@dataclass(frozen=True, slots=True)
class KvTab:
    """What the rest of the page needs of this tab: call `follow` once the page is laid out."""

    sections: list[tuple[Section, tuple[Any, ...]]]
    navigation: Any
    race_stage: Any

    def follow(self, language: Any, who: Any) -> None:
        """Say everything anew in another language; after the listener that changes the language itself."""
        for section, shown in self.sections:
            section.follow(shown, language, who)


def _sections() -> Any:
    # "wrap" never folds a section into a menu; the style sheet makes it one row that scrolls
    return gr.Tabs(selected="memory", elem_id="kv-sections", overflow_behavior="wrap")


def kv_tab(
    words: Words, service: Service, who: Any, model: Any, tab: Any, example: Race | None = None
) -> KvTab:
    """Build the tab inside the current `gr.Tab`, which is `tab`; `example` is shown before the first race."""
    experiments = Experiments(service)
    with gr.Column(elem_id="kv"), _sections() as navigation:
        with words.make(gr.Tab, {"label": "kv.section_memory"}, id="memory") as shown:
            memory = build_memory(words, service, who, model)
        with words.make(gr.Tab, {"label": "kv.section_calculator"}, id="calculator") as calculating:
            calculator = build_calculator(words, service, who, model)
        with words.make(gr.Tab, {"label": "kv.section_race"}, id="race") as racing:
            race = build_race(words, service, who, model, experiments, example)
        with words.make(gr.Tab, {"label": "kv.section_phases"}, id="phases") as reading:
            phases = build_phases(words, service, who, model, experiments)
        with words.make(gr.Tab, {"label": "kv.section_ceiling"}, id="ceiling") as waiting:
            ceiling = build_ceiling(words, service, who, model, experiments)
    views: list[tuple[Section, Any]] = [
        (memory, shown), (calculator, calculating), (race, racing), (phases, reading), (ceiling, waiting),
    ]  # fmt: skip
    sections = [(section, (tab.select, view.select)) for section, view in views]
    return KvTab(sections, navigation, race.stage)
