"""What the page asks about a run under other settings, at one step or all of them, and about a text of one's own.

Each function takes the shared service, the tab that asks, and what its stage sent, trusts nothing of it, and
returns a packet with an answer, or a sentence in its place. Knows no component.
"""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from playground.backends.protocol import Rejudge
from playground.core.codec import encode_token
from playground.core.control import Control
from playground.core.decoding import Decoding, InvalidSetting, validated
from playground.core.refusal import Refused
from playground.core.run import Run
from playground.core.what_if import RunWhatIf, StepWhatIf, TextOdds
from playground.ui.inspecting import ended_run, inspector, question_of, require_place
from playground.ui.sentences import translated
from playground.ui.session import Tab
from playground.ui.streaming import Service
from playground.ui.text import say
from playground.views.packets import Packet

SETTINGS = ("strategy", "temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty")
KEY_LIMIT = 400
SHOWN_LIMIT = 1_000
_ALL_OF_TEXT = 250
"""Characters of a text that are handed on: a little more than may be asked, so that the engine says so."""


def what_if_answer(service: Service, tab: Tab, data: object) -> Packet:
    """One step under other settings: {what: "whatif", run, lane, step, settings, key}."""

    def told(backend: Rejudge, run: Run, asked: dict[str, Any]) -> dict[str, Any]:
        decoding = _decoding(run, asked["lane"], data, tab.language, asked["step"])
        found = backend.what_if(run, asked["lane"], asked["step"], decoding, tab.token, Control())
        return _step(found)

    return _answered("whatif", service, tab, data, told)


def what_if_run_answer(service: Service, tab: Tab, data: object) -> Packet:
    """All steps of a lane under other settings: {what: "whatif_run", run, lane, settings, key}."""

    def told(backend: Rejudge, run: Run, asked: dict[str, Any]) -> dict[str, Any]:
        decoding = _decoding(run, asked["lane"], data, tab.language)
        return _run(backend.what_if_run(run, asked["lane"], decoding, tab.token, Control()))

    return _answered("whatif_run", service, tab, data, told)


def text_answer(service: Service, tab: Tab, data: object) -> Packet:
    """A text in the place of a step: {what: "text", run, lane, step, text, key}."""

    def told(backend: Rejudge, run: Run, asked: dict[str, Any]) -> dict[str, Any]:
        text = data.get("text") if isinstance(data, dict) else None
        if not isinstance(text, str):
            raise InvalidSetting(say(tab.language, "what_if.no_text"))
        if len(text) > _ALL_OF_TEXT:
            raise InvalidSetting(say(tab.language, "what_if.long_text", n=f"{len(text):,}"))
        return _text(backend.text_odds(run, asked["lane"], asked["step"], text, Control()))

    return _answered("text", service, tab, data, told)


Told = Callable[[Rejudge, Run, dict[str, Any]], dict[str, Any]]


def _answered(what: str, service: Service, tab: Tab, data: object, told: Told) -> Packet:
    asked = question_of(what, data) | {"key": key_of(data)}
    try:
        require_place(data, tab.language)
        run, _ = ended_run(service, tab, data)
        backend: object = inspector(service, tab, run)
        if not isinstance(backend, Rejudge):
            raise InvalidSetting(say(tab.language, "inspecting.no_model"))
        return {"answer": asked | told(backend, run, asked)}
    except Refused as error:
        return {"answer": asked | {"error": translated(str(error), tab.language)}}


def key_of(data: object) -> str:
    """The stage's own name for its question, given back as it came."""
    key = data.get("key") if isinstance(data, dict) else None
    return key if isinstance(key, str) and len(key) <= KEY_LIMIT else ""


def _decoding(run: Run, lane: int, data: object, language: str, step: int | None = None) -> Decoding:
    """The lane's settings, or those of a `step`, with what the stage sent; raises `InvalidSetting`."""
    given = data.get("settings") if isinstance(data, dict) else None
    if not isinstance(given, dict) or lane >= len(run.lanes):
        raise InvalidSetting(say(language, "what_if.no_settings"))
    changes = {name: given[name] for name in SETTINGS if name in given}
    top_k = changes.get("top_k")
    if isinstance(top_k, float) and top_k.is_integer():
        changes["top_k"] = int(top_k)
    own = run.lanes[lane]
    return validated(replace(own.decoding if step is None else own.decoding_at(step), **changes))


def _step(found: StepWhatIf) -> dict[str, Any]:
    return {
        "token": None if found.token is None else encode_token(found.token),
        "draw": found.draw,
        "processed_probability": found.processed_probability,
        "kept_count": found.kept_count,
        "kept_mass": found.kept_mass,
        "entropy_bits": found.entropy_bits,
        "candidates": [
            [encode_token(c.token), c.raw_logprob, c.processed_probability, c.removed_by]
            for c in found.candidates
        ],
        "source": asdict(found.source),
    }


def _run(found: RunWhatIf) -> dict[str, Any]:
    return {
        "steps": found.steps,
        "count": len(found.others),
        "others": [
            {"step": o.step, "token": encode_token(o.token), "probability": o.probability, "sure": o.sure}
            for o in found.others[:SHOWN_LIMIT]
        ],
        "source": asdict(found.source),
    }


def _text(found: TextOdds) -> dict[str, Any]:
    return {
        "tokens": [
            {
                "token": encode_token(one.token), "rank": one.rank, "logprob": max(one.logprob, -1e6),
                "processed_probability": one.processed_probability,
            }
            for one in found.tokens
        ],
        "logprob": max(found.logprob, -1e9),
        "processed_probability": found.processed_probability,
        "notes": [note.key for note in found.notes],
        "source": asdict(found.source),
    }  # fmt: skip
