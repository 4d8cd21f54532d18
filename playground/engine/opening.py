"""Before the first forward: the request made complete, or refused in a sentence.

Knows no loop.
"""

import secrets
from dataclasses import replace

from playground.core.decoding import Decoding, InvalidSetting, require_whole, validated
from playground.core.draws import fresh_seed
from playground.core.request import LANES_LIMIT, Request
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.prompts import Prompt, encode_prompt
from playground.engine.room import require_room

TOP_N_LIMIT = 200


def open_run(model: LoadedModel, request: Request) -> tuple[Request, Prompt]:
    """The request with ids, seeds and a run id filled in, and its prompt.

    Raises `RequestError` or `InvalidSetting`; nothing has been computed then.
    """
    if not 1 <= len(request.lanes) <= LANES_LIMIT:
        raise RequestError(f"A run has 1 to {LANES_LIMIT} lanes, not {len(request.lanes)}.")
    if not isinstance(request.top_n, int) or not 0 <= request.top_n <= TOP_N_LIMIT:
        raise InvalidSetting(f"top_n must be a whole number from 0 to {TOP_N_LIMIT}, not {request.top_n!r}.")
    lanes = tuple(_seeded(validated(lane)) for lane in request.lanes)
    for lane in lanes:
        _require_ids(lane, model.facts.vocabulary)
    prompt = encode_prompt(model.tokenizer, model.vocabulary, request)
    _require_parent(request, len(prompt.tokens))
    context = model.facts.context
    if context is not None and len(prompt.tokens) > context:
        raise RequestError(
            f"The prompt has {len(prompt.tokens):,} tokens and this model reads at most {context:,}; shorten it."
        )
    require_room(model, len(prompt.tokens), len(lanes))
    top_n = min(request.top_n, model.facts.vocabulary)
    run = request.run or secrets.token_urlsafe(12)
    return replace(request, lanes=lanes, prompt_ids=prompt.ids, top_n=top_n, run=run), prompt


def _require_parent(request: Request, prompt_tokens: int) -> None:
    parent = request.parent
    if parent is not None and not (type(parent.step) is int and 0 <= parent.step <= prompt_tokens):
        raise RequestError(
            f"A run can be continued from step 0 to {prompt_tokens:,}, which is all of its text, not {parent.step!r}."
        )


def _require_ids(decoding: Decoding, vocabulary: int) -> None:
    for id in (*decoding.forced, *decoding.banned, *(id for id, _ in decoding.bias)):
        require_whole("a token id of this model", id, 0, vocabulary - 1)
    if len(set(decoding.banned)) >= vocabulary:
        raise RequestError("Every token is banned, so nothing could be chosen; ban fewer.")


def _seeded(decoding: Decoding) -> Decoding:
    return decoding if decoding.seed is not None else replace(decoding, seed=fresh_seed())
