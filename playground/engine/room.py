"""Room in memory for the next forward, asked for before it.

What a forward adds is predicted: the cache's growth by the arithmetic on the config, and the logits.
Asking the system how much is free takes up to a millisecond, so room that was found is granted for a
stretch of steps ahead. Knows no loop; a model whose cache cannot be predicted is not held back.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from playground.core.units import bytes_text
from playground.engine import devices
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel

STRETCH_TOKENS = 64
"""Granted ahead where there is room for so many more positions."""

_LOGIT_COPIES = 4
"""Vectors over the vocabulary, in fp32, that a choice holds at its busiest: logits, scores, probabilities."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a cache: positions in a row, and rows."""

    tokens: int
    rows: int


class NoRoom(MemoryError):
    """The next forward would not fit; the message is the part of a sentence that says by how much."""


class Room:
    """What one run may take of its device's memory. Ended runs' caches make room first."""

    def __init__(self, model: LoadedModel, free: Callable[[torch.device], int] | None = None) -> None:
        self._model, self._free = model, free or free_bytes
        self._granted = Extent(0, 0)

    def require(self, held: Extent, then: Extent) -> None:
        """Raise `NoRoom` where the cache cannot grow from `held` to `then`; cheap where granted before."""
        if then.tokens <= self._granted.tokens and then.rows <= self._granted.rows:
            return
        needed = self._bytes(then) - self._bytes(held)
        free = self._free(self._model.device)
        if needed > free and self._model.caches.held_bytes:
            self._model.caches.clear()
            free = self._free(self._model.device)
        if needed > free:
            raise NoRoom(f"it needs about {bytes_text(needed)} of memory and {bytes_text(free)} are free")
        ahead = Extent(then.tokens + STRETCH_TOKENS, then.rows)
        self._granted = ahead if self._bytes(ahead) - self._bytes(held) <= free else then

    def _bytes(self, extent: Extent) -> int:
        spec, rows = self._model.spec, extent.rows
        cache = 0
        if spec is not None and extent.tokens:
            cache = spec.used_bytes(extent.tokens, rows) + spec.state_bytes(rows)
        return cache + rows * self._model.facts.vocabulary * 4 * _LOGIT_COPIES


def require_room(model: LoadedModel, prompt_tokens: int, lanes: int) -> None:
    """Refuse a run whose prompt, once for each lane, would not fit; nothing has been computed then."""
    try:
        Room(model).require(Extent(0, 0), Extent(prompt_tokens, lanes))
    except NoRoom as error:
        raise RequestError(
            f"This run cannot begin: {error}; nothing was changed: shorten the prompt, or ask for fewer lanes."
        ) from None


def free_bytes(device: torch.device) -> int:
    """Bytes that tensors could take on `device` now, those included that torch holds and does not use."""
    free = devices.memory(device).free_bytes
    if device.type == "cuda":
        free += torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return free
