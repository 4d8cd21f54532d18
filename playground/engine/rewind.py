"""What a run takes over from an earlier run's cache, and what it leaves for a later one.

Taking over changes how much is computed and nothing else: in float32 the tokens are those of a run
that begins anew. Knows no loop and no session.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playground.core.events import Note
from playground.core.request import Request
from playground.engine import int8
from playground.engine.cache import keep_rows, new_cache, tokens_held
from playground.engine.live import Live
from playground.engine.model import LoadedModel
from playground.engine.records import SIXTEEN_BIT
from playground.engine.store import Reuse


@dataclass(frozen=True, slots=True)
class Opening:
    """The cache that a run begins with, the positions that are in it, and what is to be said of that."""

    cache: Any
    reused_tokens: int = 0
    notes: tuple[Note, ...] = ()


def open_cache(model: LoadedModel, request: Request) -> Opening:
    """What is still right in the parent's cache, else an empty one; none for a run without a cache."""
    ids, parent = request.prompt_ids, request.parent
    assert ids is not None
    if not request.cached:
        return Opening(None)
    if parent is None:
        return Opening(new_cache(model.module))
    found = model.caches.reuse(parent.run, ids)
    notes = _notes(found, len(ids))
    if notes or parent.step == 0:
        notes += _again(model)
    if found is None or found.cache is None:
        return Opening(new_cache(model.module), 0, notes)
    return Opening(found.cache, found.tokens, notes)


def leave(model: LoadedModel, request: Request, live: Live) -> None:
    """Give the run's cache, every row that is still in it, to whoever continues the run."""
    if live.cache is None or not live.lanes:
        return
    tokens = tokens_held(live.cache)
    if tokens:
        model.caches.hand_over(request.run, live.cached_ids(tokens), live.cache)
    live.cache = None


def part(model: LoadedModel, request: Request, live: Live, rows: Sequence[int]) -> None:
    """Go on with `rows` alone; the others are left for whoever continues their lanes."""
    tokens = tokens_held(live.cache)
    ids = live.cached_ids(tokens)
    ended = [row for row in range(len(ids)) if row not in rows]
    model.caches.hand_over_rows(request.run, [ids[row] for row in ended], live.cache, ended)
    keep_rows(live.cache, list(rows))


_WHY = {
    "state": "The layers of this model keep a running state, which cannot be wound back",
    "window": "The attention windows of this model have moved on and cannot be wound back",
    "other": "A cache of this kind cannot be wound back",
}
_AGAIN_IN_16_BIT = Note(
    "again_16_bit",
    "Reading again in 16-bit numbers rounds differently, which can flip a later choice: from here on this "
    "run may differ from the one that it continues.",
)
_AGAIN_IN_8_BIT = Note(
    "again_8_bit",
    "Reading again with 8-bit matrices rounds differently, which can flip a later choice: from here on this run may "
    "differ from the one that it continues.",
)


def _again(model: LoadedModel) -> tuple[Note, ...]:
    """That reading again may part; nothing in full precision."""
    if model.facts.weights == int8.NAME:
        return (_AGAIN_IN_8_BIT,)
    return (_AGAIN_IN_16_BIT,) if model.facts.dtype in SIXTEEN_BIT else ()


def _notes(found: Reuse | None, prompt_tokens: int) -> tuple[Note, ...]:
    if found is None:
        text = f"The cache of the earlier run is no longer kept, so {prompt_tokens:,} tokens were read again."
        return (Note("again_gone", text, f"{prompt_tokens:,}"),)
    if found.obstacle is None or not found.again_tokens:
        return ()
    count = f"{found.again_tokens:,}"
    text = f"{_WHY[found.obstacle]}, so {count} tokens were read again."
    return (Note(f"again_{found.obstacle}", text, count),)
