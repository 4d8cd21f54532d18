"""The section Memory of the tab KV cache: what the session's last run holds, measured beside computed.

Layout and wiring in one place. Knows the shared service, and nothing of how a run is made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

import gradio as gr

from playground.backends.hosted import HostedRun
from playground.ui.figure import FigureBox, figure
from playground.ui.seen import Seen, look_at
from playground.ui.session import Tab, read_tab
from playground.ui.streaming import Service
from playground.ui.tab_playground import LIVE, WHO, model_name
from playground.ui.text import Words, sections
from playground.views import memory
from playground.views.cards import heading
from playground.views.figures.drilldown import DRILLDOWN, Drilldown
from playground.views.figures.held import HELD
from playground.views.figures.peak import PEAK

PLACE = "memory"
RUNS = ("run", "compare")
"""The stages whose runs are looked at."""

REFRESH_SECONDS = 0.5
FOLLOW_SECONDS = 600.0
"""How long a run, or the loading of the model, is followed; looking again follows it on."""


@dataclass(frozen=True, slots=True)
class MemorySection:
    """What the rest of the page needs of this section: call `follow` once the page is laid out."""

    model: Any
    outputs: list[Any]
    look: Callable[..., Iterator[list[Any]]]

    def follow(self, shown: tuple[Any, ...], language: Any, who: Any) -> None:
        """`shown`: listeners of the section coming into view; `language`: the `click` of that button."""
        for event in (*shown, language):
            event(self.look, [self.model, who], self.outputs, js=WHO, **LIVE)


def build_memory(words: Words, service: Service, who: Any, model: Any) -> MemorySection:
    """Build the section inside the current `gr.Tab`; without a run it speaks of the model of the Playground."""
    with gr.Row(elem_id="memory", elem_classes=["kv-two"]):
        with gr.Column(min_width=0):
            headline = words.make(
                gr.HTML, {"value": lambda t: str(memory.nothing(_Spoken(t)))}, apply_default_css=False
            )
            outlook = gr.HTML("", visible=False, apply_default_css=False)
            held = _figure(words, "held", HELD)
        with gr.Column(min_width=0):
            boxes = [_figure(words, "token", DRILLDOWN), held, _figure(words, "peak", PEAK)]
    outputs = [headline, outlook, *(place for box in boxes for place in box.outputs)]
    return MemorySection(model, outputs, _look(service, boxes))


class _Spoken(dict[str, str]):
    """The words of a section by a function that says them."""

    def __init__(self, speak: Callable[[str], str]) -> None:
        self._speak = speak

    def __missing__(self, key: str) -> str:
        return self._speak(f"kv.{key}")


def _figure(words: Words, name: str, chart: Any) -> FigureBox[Any]:
    with gr.Column(elem_classes=["card"], elem_id=f"memory-{name}", min_width=0):
        words.make(gr.HTML, {"value": lambda t: str(heading(t(f"kv.title_{name}")))}, apply_default_css=False)
        return figure(words, chart, f"figure-memory-{name}")


def _look(service: Service, boxes: list[FigureBox[Any]]) -> Callable[..., Iterator[list[Any]]]:
    """Show the latest run, and go on while it grows or the model is being loaded."""

    def look(name: Any, asked_by: Any) -> Iterator[list[Any]]:
        tab = read_tab(asked_by)
        key, until = tab.key(PLACE), monotonic() + FOLLOW_SECONDS
        number = service.wish(key, tab.wish)
        while True:
            run = latest_run(service, tab)
            seen = look_at(service, run.run if run else None, model_name(name))
            going_on = (run is not None and not run.done) or seen is None
            yield _shown(seen, boxes, tab.language, going_on)
            if not going_on or not service.stands(key, number) or monotonic() > until:
                return
            sleep(REFRESH_SECONDS)

    return look


def latest_run(service: Service, tab: Tab) -> HostedRun | None:
    """The run of the tab's stages that was begun last, if it is still kept."""
    run = service.runs.youngest(*(tab.key(place) for place in RUNS)) if tab.token else None
    return run if isinstance(run, HostedRun) else None


def _shown(seen: Seen | None, boxes: list[FigureBox[Any]], language: str, going_on: bool) -> list[Any]:
    """The figures wait for the end of a run: they are made anew at each change."""
    text = sections(language)["kv"]
    if seen is None:
        nothing = [update for box in boxes for update in box.empty(language)]
        return [str(memory.nothing(text)), gr.update(value="", visible=False), *nothing]
    reasons: Any = sections(language)["stage"]["memory"]
    headline = str(memory.holding(seen.holding, text, reasons["reason"], going_on))
    outlook = str(memory.outlook(seen.forecast, text)) if seen.forecast else ""
    if going_on:
        figures = [gr.skip()] * sum(len(box.outputs) for box in boxes)
    else:
        token, held, peak = boxes
        one = seen.holding if seen.holding.lanes else None
        figures = [
            *token.show(_one_token(seen), language), *held.show(one, language), *peak.show(seen.peak, language)
        ]  # fmt: skip
    return [headline, gr.update(value=outlook, visible=bool(outlook)), *figures]


def _one_token(seen: Seen) -> Drilldown | None:
    found = seen.holding
    if seen.spec is None:
        return None
    tokens = found.tokens if found.lanes == 1 else 1 if found.lanes else found.model.context or 1
    return Drilldown(found.model.name.rpartition("/")[2], seen.spec, tokens)
