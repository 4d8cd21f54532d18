"""The tab Learn: from prompt to first token in nine chapters, told with a run of the reader's own.

The page is drawn by `assets/learn.js`; here are its material (recorded runs, arithmetic) and the handlers that
make the reader's run. Layout and wiring in one place. Knows the shared service, and no chapter.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr

from playground import catalog, settings
from playground.backends.hosted import HostedRun
from playground.backends.protocol import Scorer
from playground.core.control import Control
from playground.core.cost import Device
from playground.core.decoding import InvalidSetting
from playground.core.lesson import lesson_request, temperatures_request
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.core.scoring import scoring_report
from playground.core.trace import load_trace
from playground.ui import presets
from playground.ui.session import Tab, read_run, read_tab, send
from playground.ui.streaming import Service, refusal
from playground.ui.tab_playground import LIVE, PRIVATE, WHO, model_name
from playground.ui.text import say
from playground.ui.theme import asset_url
from playground.views.learn import Known, facts_packet, lesson_packet, score_packet, softmax_packet
from playground.views.packets import Packet

PLACE = "learn"
RUNS = ("run", PLACE)
"""The places whose youngest run the tour is told of."""

PROMPT = "What is gravity?"
PROMPT_CHARACTERS_LIMIT = 400
PROMPT_TOKENS_LIMIT = 512
"""Of a run whose prompt is read again, at several temperatures and for its own probabilities."""

NAMES = ("main", "temperatures", "factual", "creative", "mystery")
MODEL, DEVICE = "llama-3.1-8b", "h100-sxm"
"""What the arithmetic is told with."""

_ON_LOAD = """
const waiting = [], events = ['ready', 'ask'];
let take = (packet) => waiting.push(packet);
watch('value', () => props.value && take(props.value));
import(new URL('%s', document.baseURI)).then(async (page) => {
  take = await page.adapt({element, trigger});
  waiting.splice(0).forEach((packet) => take(packet));
});
"""


KNOWN = "(...given) => [...given.slice(0, -1), window.firstTokenLearn?.who() ?? '']"
"""Puts what the tour says of itself in the place of the last input: who it is, and the run that it tells of."""


def learn_tab(service: Service, who: Any, model: Any, tab: Any) -> Any:
    """Build the tab inside the current `gr.Tab`, which is `tab`; `model` is the picker of the Playground."""
    page = gr.HTML(
        value="", html_template='<div class="learn-root"></div>', js_on_load=_ON_LOAD % asset_url("learn.js"),
        apply_default_css=False, elem_id="learn",
    )  # fmt: skip
    first = page.ready(lambda: send(lesson()), None, page, queue=False, **PRIVATE)
    first.then(_own(service), [model, who], page, js=WHO, **LIVE)
    tab.select(_own(service), [model, who], page, js=KNOWN, **LIVE)
    page.ask(_ask(service), model, page, **LIVE)
    return page


@cache
def lesson(folder: Path | None = None) -> Packet:
    """The recorded material; raises `BadTrace` where a file of ours is broken."""
    folder = folder or settings.assets_dir() / "traces" / "learn"
    recorded = {name: load_trace(folder / f"{name}.jsonl").runs[0] for name in NAMES}
    pieces = load_trace(folder / "pieces.jsonl").runs
    score = json.loads((folder / "score.json").read_text("utf-8"))
    return lesson_packet(recorded, pieces, score, known(), presets.samplings())


def known() -> Known:
    """The model and the device of the arithmetic, from the catalog."""
    model, device = catalog.config(MODEL), catalog.accelerator(DEVICE)
    assert model is not None and model.parameters is not None and device.matrix_flops is not None
    rates = Device(device.bytes_per_second, device.matrix_flops, measured=False)
    return Known(model.title, model.shape, model.parameters, device.title, rates)


def _own(service: Service) -> Callable[..., Iterator[str]]:
    def show(model: Any, asked_by: Any) -> Iterator[str]:
        """The run that the page has made already; else one is made, where a model is there to make it."""
        tab, name = read_tab(asked_by), model_name(model)
        run = latest(service, tab)
        if run is not None and run.id == read_run(asked_by):
            return
        if run is not None:
            yield from service.follow(tab, run)
        elif tab.token and isinstance(service.models.loaded(name), Scorer):
            yield from service.generate(tab, PLACE, name, lesson_request(PROMPT))
        yield from told(service, tab)

    return show


def _ask(service: Service) -> Callable[..., Iterator[str]]:
    def ask(model: Any, event: gr.EventData) -> Iterator[str]:
        data = event._data
        tab = read_tab(data)
        try:
            request = read_prompt(data, tab.language)
        except Refused as error:
            yield send(refusal(error, tab))
            return
        yield from service.generate(tab, PLACE, model_name(model), request)
        yield from told(service, tab)

    return ask


def read_prompt(data: object, language: str) -> Request:
    """The run that the reader asks for; raises `InvalidSetting`."""
    text = data.get("prompt") if isinstance(data, dict) else None
    prompt = text.strip() if isinstance(text, str) else ""
    if len(prompt) > PROMPT_CHARACTERS_LIMIT:
        raise InvalidSetting(say(language, "learn.prompt_long", most=PROMPT_CHARACTERS_LIMIT))
    return lesson_request(prompt)


def latest(service: Service, tab: Tab) -> HostedRun | None:
    """The youngest run of the tab that the tour can be told of: one lane, and at least two tokens."""
    run = service.runs.youngest(*(tab.key(place) for place in RUNS)) if tab.token else None
    return run if isinstance(run, HostedRun) and len(run.request.lanes) == 1 else None


def told(service: Service, tab: Tab) -> Iterator[str]:
    """What is told of the tab's run once it has ended: its numbers, its first step, its prompt."""
    hosted = latest(service, tab)
    if hosted is None or not hosted.done or not can_tell(hosted.run):
        return
    yield send(facts_packet(hosted.run))
    started = hosted.run.started
    backend: Any = service.models.maker_of(started.model) if started else None
    if isinstance(backend, Scorer) and 2 <= len(hosted.run.prompt_ids) <= PROMPT_TOKENS_LIMIT:
        try:
            yield from _asked_again(backend, hosted)
        except Refused:  # the recorded figures stay
            return


def can_tell(run: Run) -> bool:
    """Whether there is a first token and a next one to tell of."""
    return run.started is not None and len(run.lanes) == 1 and len(run.lanes[0].steps) > 1


def _asked_again(backend: Any, hosted: HostedRun) -> Iterator[str]:
    """The prompt read again, at several temperatures and for its own probabilities; both are short."""
    ids = hosted.run.prompt_ids
    several = fold(backend.stream(temperatures_request(ids), Control()))
    backend.forget(several.id)
    if several.lanes and all(lane.steps for lane in several.lanes):
        yield send(softmax_packet(several, hosted.id))
    scored = backend.score(Request(prompt_ids=tuple(ids)), None, top=3, control=Control())
    yield send(score_packet(scoring_report(scored), hosted.id))
