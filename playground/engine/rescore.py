"""The raw logits at many places of a sequence, by one reading in chunks; nothing is chosen.

What is asked at a place is asked while its chunk's logits are there: they are let go with the chunk, so
they never stand in memory for all places. Knows no settings and no page.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from playground.core.control import Control
from playground.core.refusal import Refused
from playground.engine.cache import forward_all, new_cache
from playground.engine.model import LoadedModel
from playground.engine.reread import CannotReread
from playground.engine.room import PREFILL_CHUNK_TOKENS, Extent, NoRoom, Room
from playground.engine.score import LOGITS_NUMBERS_LIMIT

Look = Callable[[int, torch.Tensor], None]
"""Told a place and its logits (vocabulary,) in fp32, on the model's thread."""

_log = logging.getLogger(__name__)


def rescore(
    model: LoadedModel,
    ids: Sequence[int],
    first: int,
    look: Look,
    *,
    run: str = "",
    control: Control | None = None,
) -> tuple[int, int]:
    """Read `ids` and call `look` for each place from `first` on; positions computed and reused.

    The logits of a place are those after its token. `run` is one whose cache may hold the beginning.
    Raises `CannotReread` where there is no room, the model fails, or it was stopped.
    """
    control, whole = control or Control(), tuple(ids)
    if not 0 <= first < len(whole):
        raise CannotReread("There is nothing to compute logits after; nothing was changed.")
    try:
        reused, cache = model.turns.take(partial(_begin, model, run, whole[: first + 1]))
        for begin, end in _chunks(reused, first, len(whole), model.facts.vocabulary):
            control.held_seconds()
            if control.stopped:
                raise CannotReread("The computation was stopped before its end; nothing was changed.")
            asked = end - max(begin, first)
            Room(model).require(Extent(begin, min(begin, 1)), Extent(len(whole), 1), max(asked, 1))
            model.turns.take(partial(_read, model, whole, (begin, end), first, cache, look))
    except Refused:
        raise
    except Exception as error:  # whatever a model's own code raises
        _log.exception("A run could not be scored again.")
        reason = str(error) if isinstance(error, NoRoom) else f"the model failed ({error})"
        raise CannotReread(
            f"The logits of this run could not be computed again: {reason}; nothing was changed."
        ) from error
    return len(whole) - reused, reused


def _begin(model: LoadedModel, run: str, ids: tuple[int, ...]) -> tuple[int, Any]:
    found = model.caches.reuse(run, ids) if run else None
    if found is not None and found.cache is not None:
        return found.tokens, found.cache
    return 0, new_cache(model.module)


def _chunks(begin: int, first: int, end: int, vocabulary: int) -> list[tuple[int, int]]:
    """Begin and end of each forward: as a prefill's, shorter where many logits of it are asked for."""
    asked, found = max(1, LOGITS_NUMBERS_LIMIT // max(vocabulary, 1)), []
    while begin < end:
        stop = min(begin + PREFILL_CHUNK_TOKENS, max(begin, first) + asked, end)
        found.append((begin, stop))
        begin = stop
    return found


@torch.inference_mode()
def _read(
    model: LoadedModel, ids: tuple[int, ...], chunk: tuple[int, int], first: int, cache: Any, look: Look
) -> None:
    begin, end = chunk
    batch = torch.tensor([ids[begin:end]], device=model.device)
    asked = max(0, end - max(begin, first))
    logits = forward_all(model.module, batch, cache, max(1, asked))[0]
    for i in range(asked):
        look(end - asked + i, logits[len(logits) - asked + i].float())
