"""The tab Playground: what to ask on the left, the live stage beside it.

Layout and wiring in one place. Knows the shared service, and nothing of how a run is made.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.backends.hosted import HostedRun
from playground.backends.hosted_run import Manner
from playground.core.decoding import Decoding
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.run import Run
from playground.ui import presets
from playground.ui.asking import answered
from playground.ui.controls import FIELDS, Controls, controls, fields_of, read_decoding
from playground.ui.link_control import copying, note
from playground.ui.session import Tab, read_run, read_tab, send
from playground.ui.stage import stage
from playground.ui.steering import steered
from playground.ui.streaming import Service, refusal, suggests
from playground.ui.text import Words, choices, whole
from playground.views.packets import events_packet, recorded_packet

PLACE = "run"
MODES = ("chat", "raw")
PRIVATE: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", "show_progress_on": []}
"""On nothing: else gradio tells every output there ever was of each event, and with the tabs the whole page."""

LIVE: dict[str, Any] = {**PRIVATE, "concurrency_limit": None, "trigger_mode": "multiple"}
"""Handlers that wait, for a model or for tokens: one visitor's wait must not be the next one's."""

WHO = "(...given) => [...given.slice(0, -1), window.firstToken?.who() ?? '']"
"""Puts the tab's token and language in the place of the last input."""

AGAIN = "() => [window.firstToken?.who('%s') ?? '']"
"""The same, with the run that the stage showed last."""


@dataclass(frozen=True, slots=True)
class PlaygroundTab:
    """What the rest of the page needs of this tab."""

    stage: Any
    model: Any
    offer: Any
    prompt: Any
    mode: Any
    system: Any
    controls: Controls
    to_compare: Any
    note: Any

    def fields(self) -> list[Any]:
        """What a run is asked with, less its model."""
        return [self.prompt, self.mode, self.system, *self.controls.inputs()]


def playground_tab(words: Words, service: Service, who: Any, recorded: Run | None) -> PlaygroundTab:
    """Build the tab inside the current `gr.Tab`."""
    service.recorded = recorded
    with gr.Row(elem_id="playground", elem_classes=["columns"]):
        with gr.Column(elem_id="controls", elem_classes=["card"], min_width=0):
            told = note("link-note")
            model, offer = _model_picker(words, service)
            prompt, mode, system, chips = _prompt(words)
            settings = controls(words)
            _wire_chips(chips, prompt, mode, settings.max_new_tokens)
            with gr.Row(elem_classes=["go"]):
                generate = words.make(
                    gr.Button,
                    {"value": "playground.generate"},
                    variant="primary",
                    elem_id="generate",
                    min_width=0,
                )
                stop = words.make(gr.Button, {"value": "playground.stop"}, elem_id="stop", min_width=0)
            asked = [model, prompt, mode, system, *settings.inputs()]
            with gr.Row(elem_id="onwards"):
                to_compare = words.make(
                    gr.Button, {"value": "playground.to_compare"}, elem_id="to-compare", size="sm"
                )
                names = ("model", "prompt", "mode", "system", *FIELDS)
                copying(words, "playground", dict(zip(names, asked, strict=True)))
        live = stage("run", "stage-run")
    generate.click(_generate(service), [*asked, who], live, js=WHO, **LIVE)
    stop.click(_stop(service), who, None, js=WHO, queue=False, **PRIVATE)
    first = live.ready(_first_sight(service, PLACE, recorded), None, live, queue=False, **PRIVATE)
    first.then(_resume(service), who, live, js=AGAIN % PLACE, **LIVE)
    live.ready(_as_asked(service), None, [prompt, mode, system, *settings.inputs()], queue=False, **PRIVATE)
    live.gap(_missing(service), None, live, queue=False, **PRIVATE)
    live.steer(_steer(service), asked, live, **LIVE)
    live.ask(_asked(service), None, live, concurrency_limit=4, trigger_mode="multiple", **PRIVATE)
    _switching(service, model, offer, live, who)
    _suggesting(service, model, settings)
    return PlaygroundTab(live, model, offer, prompt, mode, system, settings, to_compare, told)


def _model_picker(words: Words, service: Service) -> tuple[Any, Any]:
    models = service.models
    with gr.Column(elem_classes=["control", "picker"]):
        model = words.make(
            gr.Dropdown, {"label": "models.label"},
            choices=[(name.rpartition("/")[2], name) for name in models.offered], value=models.default,
            allow_custom_value=models.open_names, elem_id="model",
        )  # fmt: skip
        words.make(gr.HTML, {"value": "models.note"}, elem_classes=["note"])
        offer = gr.Button("", visible=False, size="sm", elem_classes=["link"])
    return model, offer


def _prompt(words: Words) -> tuple[Any, Any, Any, dict[presets.PromptPreset, Any]]:
    texts = {"label": "playground.prompt", "placeholder": "playground.prompt_placeholder"}
    prompt = words.make(
        gr.Textbox,
        texts,
        value="What is gravity? Answer in two sentences.",
        lines=3,
        max_lines=12,
        elem_id="prompt",
    )
    with gr.Row(elem_classes=["chips"]):
        chips = {
            p: words.make(gr.Button, {"value": f"presets.{p.name}"}, size="sm") for p in presets.prompts()
        }
    mode = words.make(
        gr.Radio,
        {"label": "playground.mode", "choices": choices("playground", MODES)},
        value="chat", elem_classes=["segmented"], elem_id="mode",
    )  # fmt: skip
    with words.make(gr.Accordion, {"label": "playground.system"}, open=False, elem_classes=["fold"]):
        system = words.make(
            gr.Textbox, {"label": "playground.system", "placeholder": "playground.system_placeholder"},
            lines=2, elem_id="system",
        )  # fmt: skip
    return prompt, mode, system, chips


def _wire_chips(chips: dict[presets.PromptPreset, Any], prompt: Any, mode: Any, count: Any) -> None:
    """A preset without a length of its own leaves the one that is set."""
    for preset, chip in chips.items():
        filled = f"{json.dumps(preset.text)}, {json.dumps(preset.mode)}, {preset.max_new_tokens or 'count'}"
        chip.click(None, count, [prompt, mode, count], js=f"(count) => [{filled}]", **PRIVATE)


def read_request(prompt: object, mode: object, system: object, lanes: tuple[Any, ...]) -> Request:
    """The request of a page; what it may hold is checked where it is run."""
    text = str(system or "")
    return Request(prompt=str(prompt or ""), lanes=lanes, chat=mode != "raw", system=text or None)


def _generate(service: Service) -> Callable[..., Iterator[str]]:
    def generate(model: Any, prompt: Any, mode: Any, system: Any, *rest: Any) -> Iterator[str]:
        *settings, asked_by = rest
        tab = read_tab(asked_by)
        try:
            request = read_request(prompt, mode, system, (read_decoding(settings, tab.language),))
        except Refused as error:
            yield send(refusal(error, tab))
            return
        yield from service.generate(tab, PLACE, model_name(model), request)

    return generate


def _steer(service: Service) -> Callable[..., Iterator[str]]:
    """How the run on the stage goes on; where there is none of its own, Step and Play begin one."""

    def steer(event: gr.EventData, *asked: Any) -> Iterator[str]:
        data = event._data if isinstance(event._data, dict) else {}
        run, tab = own_run(service, PLACE, data), read_tab(data)
        if run is None and data.get("action") in ("step", "play"):
            yield from begun(tab, data["action"], *asked)
        else:
            settings = list(asked[4:])
            yield from steered(service, PLACE, run, data, lambda: read_decoding(settings, tab.language))

    def begun(
        tab: Tab, manner: Manner, model: Any, prompt: Any, mode: Any, system: Any, *settings: Any
    ) -> Iterator[str]:
        try:
            request = read_request(prompt, mode, system, (read_decoding(list(settings), tab.language),))
        except Refused as error:
            yield send(refusal(error, tab))
            return
        yield from service.generate(tab, PLACE, model_name(model), request, manner)

    return steer


def _stop(service: Service) -> Callable[..., None]:
    def stop(asked_by: Any) -> None:
        service.stop(read_tab(asked_by), PLACE)

    return stop


def own_run(service: Service, place: str, data: object) -> HostedRun | None:
    """The run that the page names, if it is its own and still kept."""
    tab, run_id = read_tab(data), read_run(data)
    found = service.runs.get(tab.key(place), run_id) if tab.token and run_id else None
    return found if isinstance(found, HostedRun) else None


def first_sight(service: Service, place: str, data: object, recorded: Run | None) -> Any:
    """What a page that has just opened sees at once: a recorded run, unless its own will come."""
    if recorded is None or own_run(service, place, data) is not None:
        return gr.skip()
    return send(recorded_packet(recorded.events))


def _first_sight(service: Service, place: str, recorded: Run | None) -> Callable[..., Any]:
    def show(event: gr.EventData) -> Any:
        return first_sight(service, place, event._data, recorded)

    return show


def resumed(service: Service, place: str, asked_by: object) -> Iterator[str]:
    """The page's own run again, from its first event on; nothing where it has none."""
    run = own_run(service, place, asked_by)
    if run is not None:
        yield from service.follow(read_tab(asked_by), run)


def _resume(service: Service) -> Callable[..., Iterator[str]]:
    def resume(asked_by: Any) -> Iterator[str]:
        there = service.models.loaded(service.models.default) is not None
        if there:
            yield from service.introduce(read_tab(asked_by))
        yield from resumed(service, PLACE, asked_by)
        if not there:
            yield from service.introduce(read_tab(asked_by))

    return resume


def _as_asked(service: Service) -> Callable[..., list[Any]]:
    """After a reload the controls say again what the run on the page was asked with, unless a link fills them."""

    def fill(event: gr.EventData) -> list[Any]:
        run = own_run(service, PLACE, event._data)
        linked = isinstance(event._data, dict) and event._data.get("linked") is True
        if run is None or linked:
            return [gr.skip()] * (3 + len(fields_of(Decoding())))
        asked = run.request
        mode = "chat" if asked.chat else "raw"
        values = [asked.prompt, mode, asked.system or "", *fields_of(asked.lanes[0])]
        return [whole(value) if isinstance(value, str) else value for value in values]

    return fill


def missing(service: Service, place: str, data: Any) -> str:
    """The events that a page has noticed to lack, as far as the run has got."""
    first = data.get("from") if isinstance(data, dict) else None
    run = own_run(service, place, data)
    if run is None or not isinstance(first, int) or first < 0:
        return send(events_packet(read_run(data) or "", 0, ()))
    return send(events_packet(run.id, first, run.run.events[first:]))


def _missing(service: Service) -> Callable[..., str]:
    def again(event: gr.EventData) -> str:
        return missing(service, PLACE, event._data)

    return again


def _asked(service: Service) -> Callable[..., str]:
    def ask(event: gr.EventData) -> str:
        return answered(service, event._data)

    return ask


def _switching(service: Service, model: Any, offer: Any, live: Any, who: Any) -> None:
    """Another model is loaded when it is picked; one that cannot be is taken back."""
    good = gr.State(service.models.default)

    def switch(name: Any, kept: str, asked_by: Any) -> Iterator[tuple[Any, Any, Any]]:
        wanted = model_name(name) or service.models.default
        for value in service.introduce(read_tab(asked_by), wanted):
            yield value, gr.skip(), gr.skip()
        now = wanted if service.models.loaded(wanted) is not None else kept
        yield gr.skip(), now, now

    def take(kept: str, asked_by: Any) -> Iterator[tuple[Any, Any, Any]]:
        yield from switch(service.offer(), kept, asked_by)

    model.input(switch, [model, good, who], [live, model, good], js=WHO, **LIVE)
    offer.click(take, [good, who], [live, model, good], js=WHO, **LIVE)
    model.change(
        None, model, None, js=_OTHER_MODEL % json.dumps(service.models.default), api_visibility="private"
    )


_OTHER_MODEL = "(name) => { document.body.classList.toggle('other-model', name !== %s) }"


def _suggesting(service: Service, model: Any, settings: Controls) -> None:
    """What the model's authors ship acts only when it is asked for."""

    def fill(name: Any) -> list[Any]:
        found = suggests(service.models.loaded(model_name(name)))
        if found is None:
            return [gr.skip()] * (1 + len(settings.sliders))
        return [found.strategy, *(getattr(found, setting) for setting in settings.sliders)]

    settings.suggested.click(fill, model, [settings.strategy, *settings.sliders.values()], **PRIVATE)


def model_name(model: object) -> str | None:
    """The name that was picked or typed, None where there is none."""
    return model.strip()[:500] or None if isinstance(model, str) else None
