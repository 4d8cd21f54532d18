"""What the page asks about a run that has ended: the way through the settings at one step, and its prompt.

Each function takes the shared service, the tab that asks, and what its stage sent, trusts nothing of it, and
returns a packet: an answer, or a sentence in its place. Knows no component.
"""

from typing import Any

from playground.backends.hosted import HostedRun
from playground.backends.protocol import Inspector
from playground.core.codec import encode_token
from playground.core.control import Control
from playground.core.decoding import InvalidSetting
from playground.core.refusal import Refused
from playground.core.run import Run
from playground.core.waterfall import StepWaterfall
from playground.ui.sentences import translated
from playground.ui.session import Tab, read_run
from playground.ui.streaming import Service
from playground.ui.text import say
from playground.views.packets import Packet, events_packet

PLACE = "run"
STEPS_LIMIT = 1_000_000


def waterfall_answer(service: Service, tab: Tab, data: object) -> Packet:
    """What each setting did at a step: {what: "waterfall", run, lane, step}."""
    question = question_of("waterfall", data)
    try:
        require_place(data, tab.language)
        run, _ = ended_run(service, tab, data)
        found = inspector(service, tab, run).step_waterfall(
            run, question["lane"], question["step"], Control()
        )
    except Refused as error:
        return {"answer": question | {"error": translated(str(error), tab.language)}}
    return {"answer": question | _told(found)}


def prompt_answer(service: Service, tab: Tab, data: object) -> Packet:
    """What the model expected of the prompt: {what: "prompt", run}. It becomes part of the run's record."""
    question = {"what": "prompt", "run": read_run(data) or ""}
    try:
        run, hosted = ended_run(service, tab, data)
        event = run.prompt_read or inspector(service, tab, run).prompt_read(run, Control())
        first = run.events.index(event) if run.prompt_read is event else len(run.events)
        if run.prompt_read is None and hosted is not None:
            first = hosted.note(event)
    except Refused as error:
        return {"answer": question | {"error": translated(str(error), tab.language)}}
    label = "recorded" if hosted is None else hosted.label and "opened"
    return events_packet(run.id, first, [event], label=label) | {"answer": question}


def question_of(what: str, data: object) -> dict[str, Any]:
    """The question as it is given back with its answer; a place that is none is given back as 0, and refused."""
    lane, step = (value if _is_place(value) else 0 for _, value in _places(data))
    return {"what": what, "run": read_run(data) or "", "lane": lane, "step": step}


def require_place(data: object, language: str) -> None:
    """Raise `InvalidSetting` for a lane or a step that no run can have; one that is not named is the first."""
    for name, value in _places(data):
        if not _is_place(value):
            raise InvalidSetting(say(language, "inspecting.no_place", name=name, value=repr(value)[:40]))


def _places(data: object) -> list[tuple[str, Any]]:
    given = data if isinstance(data, dict) else {}
    return [(name, given.get(name, 0)) for name in ("lane", "step")]


def _is_place(value: object) -> bool:
    return type(value) is int and 0 <= value < STEPS_LIMIT


def ended_run(service: Service, tab: Tab, data: object) -> tuple[Run, HostedRun | None]:
    """The run that the page shows, if it is the tab's own or the recorded one that everybody sees first."""
    if service.recorded is not None and read_run(data) == service.recorded.id:
        return service.recorded, None
    found = own_run(service, tab, data)
    if not found.done:
        raise InvalidSetting(say(tab.language, "inspecting.running"))
    return found.run, found


def own_run(service: Service, tab: Tab, data: object) -> HostedRun:
    """The run of the tab that the question names, ended or not; raises `InvalidSetting`."""
    asked = read_run(data)
    found = service.runs.get(tab.key(PLACE), asked) if tab.token and asked else None
    if not isinstance(found, HostedRun):
        raise InvalidSetting(say(tab.language, "inspecting.gone"))
    return found


def inspector(service: Service, tab: Tab, run: Run) -> Inspector:
    """The loaded model that made `run`, else the default one, which refuses it; raises `InvalidSetting`."""
    made_by = run.started.model if run.started is not None else None
    same = service.models.maker_of(made_by) if made_by is not None else None
    backend: object = same or service.models.loaded()  # which says itself that the run is another model's
    if not isinstance(backend, Inspector):
        raise InvalidSetting(say(tab.language, "inspecting.no_model"))
    return backend


def _told(found: StepWaterfall) -> dict[str, Any]:
    data = found.waterfall.as_json()
    for row in data["rows"]:
        row["token"] = encode_token(found.tokens[row["id"]])
    return {"waterfall": data, "computed": found.computed, "reused": found.reused}
