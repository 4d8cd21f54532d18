"""The logits after given token ids, computed again: what a finished step's record no longer holds.

A cache of the run that is still in the store is taken over as far as it goes; the rest is read in the chunks of
a prefill, each on a turn of its own, so that runs in progress go on between them. Knows no settings, no run's
meaning and no page.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from playground.core.control import Control
from playground.core.refusal import Refused
from playground.engine.cache import new_cache
from playground.engine.model import LoadedModel
from playground.engine.room import PREFILL_CHUNK_TOKENS, Extent, NoRoom, Room

_log = logging.getLogger(__name__)


class CannotReread(Refused):
    """Logits that could not be computed again; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Reread:
    """Raw `logits` (vocabulary,) of the next token, and how many positions were computed and reused for them."""

    logits: torch.Tensor
    computed: int
    reused: int


def logits_after(
    model: LoadedModel, ids: Sequence[int], *, run: str = "", control: Control | None = None
) -> Reread:
    """The raw logits after `ids`; `run` is one whose cache may hold the beginning of them.

    Raises `CannotReread` where there is no room, the model fails, or it was stopped.
    """
    control, whole = control or Control(), tuple(ids)
    if not whole:
        raise CannotReread("There are no tokens to compute logits after; nothing was changed.")
    try:
        found = model.turns.take(partial(model.caches.reuse, run, whole)) if run else None
        cache = found.cache if found is not None and found.cache is not None else new_cache(model.module)
        reused = found.tokens if found is not None and found.cache is not None else 0
        for begin in range(reused, len(whole), PREFILL_CHUNK_TOKENS):
            control.held_seconds()
            if control.stopped:
                raise CannotReread("The computation was stopped before its end; nothing was changed.")
            Room(model).require(Extent(begin, min(begin, 1)), Extent(len(whole), 1))
            chunk = whole[begin : begin + PREFILL_CHUNK_TOKENS]
            logits = model.turns.take(partial(_forward, model, chunk, cache))
    except Refused:
        raise
    except Exception as error:  # whatever a model's own code raises
        _log.exception("Logits could not be computed again.")
        reason = str(error) if isinstance(error, NoRoom) else f"the model failed ({error})"
        raise CannotReread(
            f"The logits of this step could not be computed again: {reason}; nothing was changed."
        ) from error
    return Reread(logits, len(whole) - reused, reused)


@torch.inference_mode()
def _forward(model: LoadedModel, ids: Sequence[int], cache: Any) -> torch.Tensor:
    return model.forward(torch.tensor([list(ids)], device=model.device), cache)[0]
