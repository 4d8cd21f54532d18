"""What the page asks about words that are about to be put behind a token: the tokens that they will be.

Nothing is computed for it but the cut, so a run that is going can be asked too. How probable they are is another
question (`what_if`), for a run that has ended. Knows no component.
"""

from typing import Any

from playground.backends.protocol import Continuer
from playground.core.codec import encode_token
from playground.core.decoding import InvalidSetting
from playground.core.refusal import Refused
from playground.ui.branches import maker
from playground.ui.inspecting import own_run, question_of, require_place
from playground.ui.sentences import translated
from playground.ui.session import Tab
from playground.ui.steering import WORDS_LIMIT, tokens_before
from playground.ui.streaming import Service
from playground.ui.text import say
from playground.ui.what_if import key_of
from playground.views.packets import Packet

SHOWN_LIMIT = 200
"""Tokens that are told of one text; the count is of all."""


def pieces_answer(service: Service, tab: Tab, data: object) -> Packet:
    """The tokens of a text as they would be forced at a step: {what: "pieces", run, step, text, key}."""
    asked = question_of("pieces", data) | {"key": key_of(data)}
    try:
        require_place(data, tab.language)
        return {"answer": asked | _pieces(service, tab, data, asked["step"])}
    except Refused as error:
        return {"answer": asked | {"error": translated(str(error), tab.language)}}


def _pieces(service: Service, tab: Tab, data: object, step: int) -> dict[str, Any]:
    run = own_run(service, tab, data)
    backend: object = maker(service.models, run)
    if not isinstance(backend, Continuer):
        raise InvalidSetting(say(tab.language, "steering.no_model"))
    if not run.run.lanes or step > len(run.run.lanes[0].steps):
        raise InvalidSetting(say(tab.language, "steering.place"))
    text = data.get("text") if isinstance(data, dict) else None
    if not isinstance(text, str) or not 0 < len(text) <= WORDS_LIMIT:
        raise InvalidSetting(say(tab.language, "steering.words", count=f"{WORDS_LIMIT:,}"))
    tokens, notes = backend.continuation(tokens_before(run.run, step), text)
    return {
        "tokens": [encode_token(token) for token in tokens[:SHOWN_LIMIT]],
        "count": len(tokens),
        "notes": [note.key for note in notes],
    }
