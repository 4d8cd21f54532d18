"""The section Calculator of the tab KV cache: what any config costs, by arithmetic; no model is loaded.

Layout and wiring in one place. The number of parameters of a family that the arithmetic does not count is
found in the background. Knows no run.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground import catalog, settings
from playground.core.refusal import Refused
from playground.ui.calculation import Asked, Calculated, ParameterCounts, calculated, refused
from playground.ui.config_text import CHARACTERS_LIMIT, too_long
from playground.ui.figure import FigureBox, figure
from playground.ui.session import read_tab
from playground.ui.streaming import Service
from playground.ui.tab_playground import LIVE, PRIVATE, WHO
from playground.ui.text import LANGUAGES, Words, choices
from playground.views.cards import heading
from playground.views.figures.capacity import CAPACITY
from playground.views.figures.chart import Chart
from playground.views.figures.drilldown import DRILLDOWN
from playground.views.figures.ghosts import GHOSTS
from playground.views.figures.growth import GROWTH

PLACE = "calculator"
FORMATS = ("float32", "bfloat16", "float8_e4m3fn", "int4")
FIRST = Asked("llama-3.1-8b", "", 4096, 32, "bfloat16", "bfloat16", "h100-sxm")
PRESETS = ((4096, 1), (4096, 32), (128_000, 1), (131_072, 1))
QUICK: dict[str, Any] = {**PRIVATE, "queue": False, "trigger_mode": "always_last"}

TOO_LONG = "too long"
PICK = """() => new Promise((resolve) => {
  const input = Object.assign(document.createElement('input'), { type: 'file', accept: '.json,application/json' });
  const answer = (text) => resolve([text, window.firstToken?.who() ?? '']);
  input.oncancel = () => answer('');
  input.onchange = async () => answer(input.files[0].size > %d ? '%s' : await input.files[0].text());
  input.click();
})"""
"""The file is read by the browser: one that is too long is never sent, and none is stored on the server."""


@dataclass(frozen=True, slots=True)
class CalculatorSection:
    """What the rest of the page needs of this section: call `follow` once the page is laid out."""

    inputs: list[Any]
    outputs: list[Any]
    calculate: Callable[..., Any]

    def follow(self, shown: tuple[Any, ...], language: Any, who: Any) -> None:
        """`shown`: listeners of the section coming into view; `language`: the `click` of that button."""
        for event in (*shown, language):
            event(self.calculate, [*self.inputs, who], self.outputs, js=WHO, **QUICK)


def build_calculator(words: Words, service: Service, who: Any, model: Any) -> CalculatorSection:
    """Build the section inside the current `gr.Tab`."""
    counts = ParameterCounts()
    with gr.Row(elem_id="calculator", elem_classes=["kv-columns"]):
        with gr.Column(elem_id="calculator-controls", elem_classes=["card"], min_width=0):
            name, text, pick = _config(words)
            tokens, sequences = _amounts(words)
            dtype, weights, device = _formats(words)
        with gr.Column(elem_classes=["kv-answer"], min_width=0):
            answer = _answer(words, counts)
    inputs = [name, text, tokens, sequences, dtype, weights, device]
    calculate, count = _calculate(service, counts, answer), _count(service, counts, answer)
    changed = gr.on(
        [field.change for field in inputs], calculate, [*inputs, who], answer.outputs, js=WHO, **QUICK
    )
    changed.then(count, [*inputs, who], answer.outputs, js=WHO, **LIVE)
    pick.click(
        _picked(answer), [gr.Textbox(visible=False), who], [text, *answer.outputs],
        js=PICK % (CHARACTERS_LIMIT, TOO_LONG), **LIVE,
    )  # fmt: skip
    return CalculatorSection(inputs, answer.outputs, calculate)


@dataclass(frozen=True, slots=True)
class _Answer:
    """The places of the answer: one sentence where there is none, else all the rest."""

    refusal: Any
    whole: Any
    headline: Any
    lengths: Any
    accelerators: Any
    sources: Any
    figures: dict[str, FigureBox[Any]]

    @property
    def outputs(self) -> list[Any]:
        """All places, in the order of `say` and `refuse`."""
        figures = [place for box in self.figures.values() for place in box.outputs]
        told = [self.headline, self.lengths, self.accelerators, self.sources]
        return [self.refusal, self.whole, *told, *figures]

    def say(self, found: Calculated, language: str) -> list[Any]:
        """The answer in its places."""
        figures = [
            update
            for name, box in self.figures.items()
            for update in box.show(getattr(found, name), language)
        ]
        parts = [str(part) for part in (found.headline, found.lengths, found.accelerators, found.sources)]
        return [gr.update(value="", visible=False), gr.update(visible=True), *parts, *figures]

    def refuse(self, error: Refused, language: str) -> list[Any]:
        """One sentence, and nothing else."""
        rest = len(self.outputs) - 2
        sentence = gr.update(value=refused(error, language), visible=True)
        return [sentence, gr.update(visible=False), *[gr.skip()] * rest]


FIGURES: dict[str, Chart[Any]] = {
    "drilldown": DRILLDOWN, "ghosts": GHOSTS, "growth": GROWTH, "capacity": CAPACITY
}  # fmt: skip


def _answer(words: Words, counts: ParameterCounts) -> _Answer:
    found = calculated(FIRST, counts, LANGUAGES[0])
    refusal = gr.HTML("", visible=False, apply_default_css=False, elem_id="calculation-refused")
    boxes: dict[str, FigureBox[Any]] = {}
    with gr.Column(elem_id="calculation", min_width=0) as whole:
        with gr.Row(elem_classes=["kv-two"]):
            with gr.Column(min_width=0):
                headline = gr.HTML(str(found.headline), apply_default_css=False)
                boxes |= {name: _figure(words, name, found) for name in ("capacity", "growth")}
            with gr.Column(min_width=0):
                boxes |= {name: _figure(words, name, found) for name in ("drilldown", "ghosts")}
                lengths = gr.HTML(str(found.lengths), apply_default_css=False, elem_classes=["kv-stack"])
        accelerators = gr.HTML(str(found.accelerators), apply_default_css=False)
        sources = gr.HTML(str(found.sources), apply_default_css=False)
    return _Answer(refusal, whole, headline, lengths, accelerators, sources, boxes)


def _figure(words: Words, name: str, found: Calculated) -> FigureBox[Any]:
    with gr.Column(elem_classes=["card"], elem_id=f"calculation-{name}", min_width=0):
        words.make(gr.HTML, {"value": lambda t: str(heading(t(f"kv.title_{name}")))}, apply_default_css=False)
        return figure(words, FIGURES[name], f"figure-{name}", getattr(found, name))


def _config(words: Words) -> tuple[Any, Any, Any]:
    name = words.make(
        gr.Dropdown, {"label": "kv.model"}, choices=[(known.title, known.name) for known in catalog.configs()],
        value=FIRST.name, elem_id="calculator-model",
    )  # fmt: skip
    with words.make(gr.Accordion, {"label": "kv.own"}, open=False, elem_classes=["fold"]):
        text = words.make(
            gr.Textbox, {"label": "kv.config", "placeholder": "kv.config_placeholder"}, lines=4, max_lines=8,
            elem_id="calculator-config", elem_classes=["field"],
        )  # fmt: skip
        pick = words.make(gr.Button, {"value": "kv.upload"}, size="sm", elem_id="calculator-upload")
        if not settings.from_environment().offline:
            _hub(words, text)
    name.input(None, js="() => ''", outputs=text, **PRIVATE)
    return name, text, pick


def _picked(answer: _Answer) -> Callable[..., list[Any]]:
    def picked(content: Any, asked_by: Any) -> list[Any]:
        """The text of a file in the field of pasted ones; a sentence for one that is too long."""
        if content != TOO_LONG:
            return [content or gr.skip(), *[gr.skip()] * len(answer.outputs)]
        return [gr.skip(), *answer.refuse(too_long(), read_tab(asked_by).language)]

    return picked


def _hub(words: Words, text: Any) -> None:
    """A config is fetched when its button is pressed, and never before; it is shown as the text it is."""
    hub = words.make(
        gr.Textbox, {"label": "kv.hub", "placeholder": "kv.hub_placeholder"}, max_lines=1, max_length=200,
        elem_id="calculator-hub", elem_classes=["field"],
    )  # fmt: skip
    fetch = words.make(gr.Button, {"value": "kv.fetch"}, size="sm", elem_id="calculator-fetch")
    said = gr.HTML("", apply_default_css=False, elem_classes=["kv-said"])

    def fetched(wanted: Any, asked_by: Any) -> tuple[Any, str]:
        try:
            return json.dumps(catalog.hub_config(str(wanted)), indent=2), ""
        except Refused as error:
            return gr.skip(), refused(error, read_tab(asked_by).language)

    who = gr.Textbox(visible=False)
    fetch.click(fetched, [hub, who], [text, said], js=WHO, **LIVE)


def _amounts(words: Words) -> tuple[Any, Any]:
    with gr.Row(elem_classes=["pair"]):
        tokens, sequences = (
            words.make(
                gr.Number, {"label": f"kv.{name}_asked"}, value=getattr(FIRST, name), precision=0,
                elem_id=f"calculator-{name}", elem_classes=["field"], min_width=0,
            )
            for name in ("tokens", "sequences")
        )  # fmt: skip
    with gr.Row(elem_classes=["chips"]):
        for preset in PRESETS:
            label = f"{preset[0]:,}" if preset[1] == 1 else f"{preset[1]} × {preset[0]:,}"
            chip = gr.Button(label, size="sm", min_width=0)
            chip.click(None, js=f"() => {json.dumps(preset)}", outputs=[tokens, sequences], **PRIVATE)
    return tokens, sequences


def _formats(words: Words) -> tuple[Any, Any, Any]:
    dtype, weights = (
        words.make(
            gr.Radio, {"label": f"kv.{name}", "choices": choices("kv", [f"short_{form}" for form in FORMATS])},
            value=f"short_{FIRST.dtype}", elem_id=f"calculator-{name}", elem_classes=["segmented"],
        )
        for name in ("dtype", "weights_dtype")
    )  # fmt: skip
    device = words.make(
        gr.Dropdown, {"label": "kv.accelerator"},
        choices=[(known.title, known.name) for known in catalog.accelerators()], value=FIRST.accelerator,
        elem_id="calculator-accelerator",
    )  # fmt: skip
    return dtype, weights, device


def _calculate(service: Service, counts: ParameterCounts, answer: _Answer) -> Callable[..., Any]:
    def calculate(*given: Any) -> Any:
        *fields, asked_by = given
        tab = read_tab(asked_by)
        service.wish(tab.key(PLACE), tab.wish)
        try:
            return answer.say(calculated(Asked.of(fields), counts, tab.language), tab.language)
        except Refused as error:
            return answer.refuse(error, tab.language)

    return calculate


def _count(service: Service, counts: ParameterCounts, answer: _Answer) -> Callable[..., Any]:
    """The parameters, where they are not known yet: then all is said again, if nothing else was asked since."""

    def count(*given: Any) -> Any:
        *fields, asked_by = given
        tab, asked = read_tab(asked_by), Asked.of(fields)
        number = service.wish(tab.key(PLACE), tab.wish)
        if not counts.find(asked) or not service.stands(tab.key(PLACE), number):
            return [gr.skip()] * len(answer.outputs)
        return answer.say(calculated(asked, counts, tab.language), tab.language)

    return count
