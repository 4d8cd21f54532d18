"""The race inside the tab KV cache: one greedy run with the cache and the same without it, live.

Layout and wiring in one place. Knows the shared service, and nothing of how a race is run or counted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gradio as gr

from playground.backends.hosted import HostedRace
from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.race import Race
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.trace import BadTrace, load_trace
from playground.ui.experiments import Experiments
from playground.ui.figure import FigureBox, figure
from playground.ui.kv_recheck import Recheck, build_recheck
from playground.ui.session import Tab, read_run, read_tab, send
from playground.ui.stage import stage
from playground.ui.streaming import Service, refusal, told
from playground.ui.tab_playground import AGAIN, LIVE, PRIVATE, WHO, model_name
from playground.ui.text import Words, say
from playground.views.figures.race import RACE_STEPS
from playground.views.packets import Packet, race_packet, record_packet, work_packet

PLACE = "race"
EXAMPLE = "race.jsonl"
PROMPT = "What is gravity?"
NEW_TOKENS, NEW_TOKENS_LIMIT = 64, 512
COUNTED_LIMIT = 200_000
"""Of prompt and answer together: beyond it a count could not be told exactly by the page."""


@dataclass(frozen=True, slots=True)
class RaceSection:
    """What the rest of the page needs of this section: call `follow` once the page is laid out."""

    prompt: Any
    new_tokens: Any
    recheck: Recheck
    steps: Callable[..., list[Any]]
    outputs: list[Any]
    stage: Any

    def follow(self, shown: tuple[Any, ...], language: Any, who: Any) -> None:
        """`shown`: listeners of the section coming into view; `language`: the `click` of that button."""
        for event in (*shown, language):
            event(self.steps, who, self.outputs, js=WHO, queue=False, **PRIVATE)
            self.recheck.follow(event)


def build_race(
    words: Words,
    service: Service,
    who: Any,
    model: Any,
    experiments: Experiments | None = None,
    example: Race | None = None,
) -> RaceSection:
    """Build the section inside the current `gr.Tab`; it runs with the model of the Playground.

    `experiments` are those of the page, of which one at a time has the device. `example` is a recorded race,
    shown before the first one.
    """
    with gr.Column(elem_id="race"):
        with gr.Column(elem_classes=["card"], elem_id="race-controls"):
            prompt, new_tokens, start, stop = _asking(words)
        live = stage("race", "stage-race")
        with gr.Column(elem_classes=["card"], elem_id="race-steps", visible=False) as card:
            steps = figure(words, RACE_STEPS, "figure-race-steps")
        with gr.Column(elem_classes=["card"], elem_id="race-figures"):
            before, count = _lengths(words)
            figures = stage("work", "stage-work")
        recheck = build_recheck(words, who, model, experiments or Experiments(service))
    asked = [model, prompt, new_tokens, who]
    ended = start.click(_race(service), asked, live, js=WHO, **LIVE)
    stop.click(lambda by: service.stop(read_tab(by), PLACE), who, None, js=WHO, queue=False, **PRIVATE)
    found_again = live.ready(_resume(service, example), who, live, js=AGAIN % PLACE, **LIVE)
    shown, outputs = _kept_steps(service, steps), [card, *steps.outputs]
    for event in (ended, found_again):
        event.then(shown, who, outputs, js=WHO, queue=False, **PRIVATE)
    live.gap(_missing(service), None, live, queue=False, **PRIVATE)
    lengths = [before, count, who]
    figures.ready(counted, lengths, figures, js=WHO, queue=False, **PRIVATE)
    for field in (before, count):
        field.change(counted, lengths, figures, js=WHO, queue=False, trigger_mode="always_last", **PRIVATE)
    return RaceSection(prompt, new_tokens, recheck, shown, outputs, live)


def _asking(words: Words) -> tuple[Any, Any, Any, Any]:
    words.make(gr.HTML, {"value": "race.what"}, elem_classes=["note"])
    with gr.Row(elem_classes=["ask"]):
        prompt = words.make(
            gr.Textbox, {"label": "race.prompt"}, value=PROMPT, lines=1, max_lines=8, elem_id="race-prompt",
        )  # fmt: skip
        new_tokens = words.make(
            gr.Number, {"label": "race.new_tokens"}, value=NEW_TOKENS, precision=0, elem_id="race-count",
        )  # fmt: skip
        start = words.make(
            gr.Button, {"value": "race.start"}, variant="primary", elem_id="race-start", min_width=0
        )
        stop = words.make(gr.Button, {"value": "race.stop"}, elem_id="race-stop", min_width=0)
    return prompt, new_tokens, start, stop


def _lengths(words: Words) -> tuple[Any, Any]:
    words.make(gr.HTML, {"value": "race.any_length"}, elem_classes=["note"])
    with gr.Row(elem_classes=["lengths"]):
        before = words.make(gr.Number, {"label": "race.p"}, value=1, precision=0, elem_id="race-p")
        count = words.make(gr.Number, {"label": "race.n"}, value=1000, precision=0, elem_id="race-n")
    return before, count


def _race(service: Service) -> Callable[..., Iterator[str]]:
    def race(model: Any, prompt: Any, new_tokens: Any, asked_by: Any) -> Iterator[str]:
        tab = read_tab(asked_by)
        try:
            lane = read_lane(new_tokens, tab.language)
        except Refused as error:
            yield send(refusal(error, tab))
            return
        request = Request(prompt=str(prompt or ""), lanes=(lane,), top_n=1)
        yield from service.race(tab, PLACE, model_name(model), request)

    return race


def read_lane(new_tokens: object, language: str) -> Decoding:
    """The one greedy lane of a race; raises `InvalidSetting` for a count that the page does not offer."""
    count = read_count(new_tokens, "race.new_tokens", language)
    if not 1 <= count <= NEW_TOKENS_LIMIT:
        raise InvalidSetting(say(language, "race.bounds", most=f"{NEW_TOKENS_LIMIT:,}", count=f"{count:,}"))
    return replace(GREEDY, max_new_tokens=count)


def read_count(value: object, name: str, language: str) -> int:
    """A whole number from a field, whose label is `name`; raises `InvalidSetting`."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int:
        raise InvalidSetting(say(language, "errors.whole", name=say(language, name), value=str(value)[:40]))
    return value


def counted(before: object, count: object, asked_by: object) -> str:
    """The counts of any length, from the function that counts the live race; a wrong one is a sentence."""
    tab = read_tab(asked_by)
    try:
        return send(work_of(before, count, tab.language))
    except Refused as error:
        return send(refusal(error, tab))


def work_of(before: object, count: object, language: str) -> Packet:
    """The packet of `count` new tokens after a prompt of `before`; raises `InvalidSetting`."""
    prompt_tokens = read_count(before, "race.p", language)
    new_tokens = read_count(count, "race.n", language)
    if prompt_tokens + new_tokens > COUNTED_LIMIT + 1:
        raise InvalidSetting(say(language, "race.too_long", most=f"{COUNTED_LIMIT:,}"))
    return work_packet(prompt_tokens, new_tokens)


def own_race(service: Service, tab: Tab, run_id: str | None) -> HostedRace | None:
    """The race that the page names, if it is its own and still kept."""
    found = service.runs.get(tab.key(PLACE), run_id) if tab.token and run_id else None
    return found if isinstance(found, HostedRace) else None


def _resume(service: Service, example: Race | None) -> Callable[..., Iterator[str]]:
    def resume(asked_by: Any) -> Iterator[str]:
        tab = read_tab(asked_by)
        race = own_race(service, tab, read_run(asked_by))
        if race is not None:
            yield from service.follow(tab, race)
        elif example is not None:
            yield send(record_packet(example, label="recorded"))

    return resume


def recorded_race(folder: Path) -> Race | None:
    """The race that was recorded in `folder`; None where there is none."""
    try:
        records = load_trace(folder / EXAMPLE).records
    except BadTrace:
        return None
    return next((record for record in records if isinstance(record, Race)), None)


def _kept_steps(service: Service, steps: FigureBox[Race]) -> Callable[..., list[Any]]:
    def show(asked_by: Any) -> list[Any]:
        """The step times of the tab's last race as a figure with its table, once there are any."""
        tab = read_tab(asked_by)
        hosted = service.runs.latest(tab.key(PLACE)) if tab.token else None
        race = hosted.race if isinstance(hosted, HostedRace) and hosted.race.ticks else None
        return [gr.update(visible=race is not None), *steps.show(race, tab.language)]

    return show


def _missing(service: Service) -> Callable[..., str]:
    def again(event: gr.EventData) -> str:
        return missing(service, event._data)

    return again


def missing(service: Service, data: Any) -> str:
    """The events that a page has noticed to lack, as far as the race has got."""
    first = data.get("from") if isinstance(data, dict) else None
    race = own_race(service, read_tab(data), read_run(data))
    if race is None or not isinstance(first, int) or first < 0:
        return send(race_packet(read_run(data) or "", 0, ()))
    return send(told(race, first, race.events[first:]))
