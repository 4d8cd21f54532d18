"""The tab Compare: one prompt, two to four runs side by side from one prefill.

Layout and wiring in one place. Knows the shared service, and nothing of how a run is made.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.core.decoding import Decoding
from playground.core.refusal import Refused
from playground.core.run import Run
from playground.ui import presets
from playground.ui.compare_fields import fields_of_run
from playground.ui.draws import Draws
from playground.ui.lane_tools import LaneTools, Rows
from playground.ui.lanes import LANES, SUGGESTED, lane_choices, read_lanes, spec_of
from playground.ui.link_control import copying, note
from playground.ui.session import read_tab, send
from playground.ui.stage import stage
from playground.ui.steering import steered
from playground.ui.streaming import Service, refusal, suggests
from playground.ui.tab_playground import (
    AGAIN,
    LIVE,
    MODES,
    PRIVATE,
    WHO,
    first_sight,
    missing,
    model_name,
    own_run,
    read_request,
    resumed,
)
from playground.ui.text import Words, choices, say
from playground.views.packets import error_packet

PLACE = "compare"
FIRST_LANES = ("greedy", "balanced", "creative", "wild")


@dataclass(frozen=True, slots=True)
class CompareTab:
    """What the rest of the page needs of this tab."""

    stage: Any
    prompt: Any
    mode: Any
    count: Any
    system: Any
    specs: list[Any]
    presets: list[Any]
    shown: Any
    rows: list[Any]
    note: Any

    def fields(self) -> list[Any]:
        """What the runs are asked with, less their model; the rows are shown or hidden."""
        first = [self.prompt, self.mode, self.system, self.count, self.shown]
        return [*first, *self.rows, *self.presets, *self.specs]


def compare_tab(words: Words, service: Service, who: Any, model: Any, recorded: Run | None) -> CompareTab:
    """Build the tab inside the current `gr.Tab`; it runs with the model of the Playground."""
    with gr.Column(elem_id="compare"):
        with gr.Column(elem_classes=["card"], elem_id="compare-controls"):
            told = note("compare-link-note")
            with gr.Row(elem_classes=["ask"]):
                prompt = words.make(
                    gr.Textbox, {"label": "playground.prompt"}, value="Write one sentence about the sea.",
                    lines=1, max_lines=8, elem_id="compare-prompt",
                )  # fmt: skip
                mode = words.make(
                    gr.Radio,
                    {"label": "playground.mode",
                     "choices": choices("playground", MODES)},
                    value="chat", elem_classes=["segmented"], elem_id="compare-mode",
                )  # fmt: skip
                count = words.make(
                    gr.Number,
                    {"label": "controls.max_new_tokens"},
                    value=48,
                    precision=0,
                    elem_id="compare-count",
                )
            system = gr.Textbox(visible=False)
            rows, duplicates, removes = _lanes(words)
            tools = LaneTools(words)
            draws = Draws(words)
            with gr.Row(elem_classes=["go"]):
                add = words.make(gr.Button, {"value": "compare.add"}, elem_id="add-lane")
                inputs = dict(model=model, prompt=prompt, mode=mode, system=system, max_new_tokens=count)
                lanes = {f"lane-{letter}": spec for letter, spec in zip(LANES, rows.specs, strict=True)}
                copying(words, "compare", inputs | lanes)
                stop = words.make(gr.Button, {"value": "compare.stop"}, elem_id="stop-all")
                go = words.make(
                    gr.Button, {"value": "compare.generate"}, variant="primary", elem_id="generate-all"
                )
        live = stage("compare", "stage-compare")
    _adding(rows, add, duplicates, removes)
    _choosing(service, rows, model, live, who)
    asked = [model, prompt, mode, system, count]
    tools.wire(service, rows, asked, live, who)
    draws.wire(service, rows, asked, live, who, PLACE)
    go.click(
        _generate(service),
        [*asked, *rows.inputs, who],
        live,
        js=WHO,
        **LIVE,
    )
    stop.click(lambda by: service.stop(read_tab(by), PLACE), who, None, js=WHO, queue=False, **PRIVATE)
    first = live.ready(_first_sight(service, recorded), None, live, queue=False, **PRIVATE)
    first.then(_resume(service), who, live, js=AGAIN % PLACE, **LIVE)
    live.gap(_missing(service), None, live, queue=False, **PRIVATE)
    live.steer(_steer(service), None, live, **LIVE)
    made = CompareTab(live, prompt, mode, count, system, rows.specs, rows.names, rows.shown, rows.rows, told)
    live.ready(_as_asked(service, len(made.fields())), None, made.fields(), queue=False, **PRIVATE)
    return made


def _lanes(words: Words) -> tuple[Rows, list[Any], list[Any]]:
    """The rows, and the buttons that duplicate and remove each."""
    rows, fields = [], []
    with gr.Row(elem_classes=["lanes"]):
        for index, letter in enumerate(LANES):
            with gr.Column(elem_classes=["lane"], min_width=180) as row:
                fields.append(_lane(words, index, letter))
            rows.append(row)
    names, specs, duplicates, removes = map(list, zip(*fields, strict=True))
    return Rows(gr.State([True] * len(LANES)), rows, names, specs), duplicates, removes


def _lane(words: Words, index: int, letter: str) -> tuple[Any, Any, Any, Any]:
    with gr.Row(elem_classes=["lane-head"]):
        name = words.make(
            gr.Dropdown,
            {"label": lambda t: t("compare.lane").format(letter=letter),
             "choices": lane_choices},
            value=FIRST_LANES[index], elem_id=f"lane-{letter}",
        )  # fmt: skip
        duplicate = words.make(
            gr.Button, {"value": lambda t: t("compare.duplicate").format(letter=letter)}, size="sm",
            elem_classes=["duplicate"],
        )  # fmt: skip
        remove = words.make(
            gr.Button, {"value": lambda t: t("compare.remove").format(letter=letter)}, size="sm",
            elem_classes=["remove"],
        )  # fmt: skip
    spec = words.make(
        gr.Textbox, {"label": lambda t: t("compare.settings_of").format(letter=letter)},
        value=spec_of(presets.lanes()[FIRST_LANES[index]]), max_lines=1, max_length=40_000, elem_classes=["spec"],
    )  # fmt: skip
    spec.input(None, js="() => 'own'", outputs=name, **PRIVATE)
    return name, spec, duplicate, remove


def _adding(rows: Rows, add: Any, duplicates: list[Any], removes: list[Any]) -> None:
    def with_one_more(now: list[bool]) -> Any:
        after = list(now)
        if False in after:
            after[after.index(False)] = True
        return _visible(after)

    def without(index: int) -> Callable[[list[bool]], Any]:
        def remove(now: list[bool]) -> Any:
            return _visible([on and (i != index or sum(now) <= 2) for i, on in enumerate(now)])

        return remove

    def twice(index: int) -> Callable[..., list[Any]]:
        return lambda *values: rows.updates(rows.read(values).duplicated(index))

    add.click(with_one_more, rows.shown, [rows.shown, *rows.rows], **PRIVATE)
    for index, (duplicate, remove) in enumerate(zip(duplicates, removes, strict=True)):
        duplicate.click(twice(index), rows.inputs, rows.outputs, **PRIVATE)
        remove.click(without(index), rows.shown, [rows.shown, *rows.rows], **PRIVATE)


def _visible(shown: list[bool]) -> list[Any]:
    return [shown, *(gr.update(visible=on) for on in shown)]


def _choosing(service: Service, rows: Rows, model: Any, live: Any, who: Any) -> None:
    """A preset fills the settings; the model's own are those that its authors ship, where they do."""

    def fill(chosen: Any, model: Any, asked_by: Any) -> list[Any]:
        if isinstance(chosen, str) and chosen in presets.lanes():
            return [spec_of(presets.lanes()[chosen]), gr.skip()]
        if chosen != SUGGESTED:
            return [gr.skip(), gr.skip()]
        found = suggestion(service, model)
        if found is None:
            language = read_tab(asked_by).language
            return [gr.skip(), send(error_packet(say(language, "compare.no_suggestion")))]
        return [found, gr.skip()]

    for name, spec in zip(rows.names, rows.specs, strict=True):
        name.input(
            fill, [name, model, who], [spec, live],
            js="(chosen, model) => [chosen, model, window.firstToken.who()]", **PRIVATE,
        )  # fmt: skip


def suggestion(service: Service, model: object) -> str | None:
    """The settings that the authors of the model ship, as a spec; None where they ship none."""
    found = suggests(service.models.loaded(model_name(model) or service.models.default))
    return None if found is None else spec_of(found)


def _generate(service: Service) -> Callable[..., Iterator[str]]:
    def generate(
        model: Any, prompt: Any, mode: Any, system: Any, count: Any, shown: Any, *rest: Any
    ) -> Iterator[str]:
        names, specs, asked_by = rest[:4], rest[4:8], rest[8]
        tab = read_tab(asked_by)
        try:
            lanes = read_lanes(shown, names, specs, count, tab.language)
        except Refused as error:
            yield send(refusal(error, tab))
            return
        yield from service.generate(tab, PLACE, model_name(model), read_request(prompt, mode, system, lanes))

    return generate


def _resume(service: Service) -> Callable[..., Iterator[str]]:
    def resume(asked_by: Any) -> Iterator[str]:
        yield from resumed(service, PLACE, asked_by)

    return resume


def _steer(service: Service) -> Callable[..., Iterator[str]]:
    """Pause, step, play and pace act on all lanes; what needs settings is for a single lane alone."""

    def steer(event: gr.EventData) -> Iterator[str]:
        run = own_run(service, PLACE, event._data)
        yield from steered(service, PLACE, run, event._data, Decoding)

    return steer


def _first_sight(service: Service, recorded: Run | None) -> Callable[..., Any]:
    def show(event: gr.EventData) -> Any:
        return first_sight(service, PLACE, event._data, recorded)

    return show


def _as_asked(service: Service, fields: int) -> Callable[..., list[Any]]:
    """After a reload the fields say again what the run on the page was asked with, unless a link fills them."""

    def fill(event: gr.EventData) -> list[Any]:
        run = own_run(service, PLACE, event._data)
        linked = isinstance(event._data, dict) and event._data.get("linked") is True
        found = None if run is None or linked else fields_of_run(run.request)
        return [gr.skip()] * fields if found is None else found

    return fill


def _missing(service: Service) -> Callable[..., str]:
    def again(event: gr.EventData) -> str:
        return missing(service, PLACE, event._data)

    return again
