"""Room in memory for the next forward, asked for before it.

What a forward adds is predicted: the cache's growth by the arithmetic on the config, the logits, and an
estimate of what its widest layer holds meanwhile. Asking the system how much is free takes up to a
millisecond, so room that was found is granted for a stretch of steps ahead. Knows no loop; what cannot
be predicted of a model holds nobody back.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch

from playground.core.fits import Widths, widths
from playground.core.peak import activation_bytes, logits_bytes
from playground.core.units import bytes_text
from playground.engine import devices
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel

PREFILL_CHUNK_TOKENS = 256
"""Positions of a prompt that one forward reads at most, where a cache keeps what was read."""

STRETCH_TOKENS = 64
"""Granted ahead where there is room for so many more positions."""

_LOGIT_COPIES = 4
"""Vectors over the vocabulary, in fp32, that a choice holds at its busiest: logits, scores, probabilities."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of what has been read: positions in a row, and rows."""

    tokens: int
    rows: int


class NoRoom(MemoryError):
    """The next forward would not fit; the message is the part of a sentence that says by how much."""


class Room:
    """What one run may take of its device's memory. Ended runs' caches make room first.

    A run that is not `cached` keeps nothing, and reads its whole text in each forward.
    """

    def __init__(
        self, model: LoadedModel, free: Callable[[torch.device], int] | None = None, *, cached: bool = True
    ) -> None:
        self._model, self._free, self._cached = model, free or free_bytes, cached
        self._granted = Extent(0, 0)

    def require(self, held: Extent, then: Extent, logit_rows: int = 0) -> None:
        """Raise `NoRoom` where a run cannot go on from `held` to `then`; cheap where granted before.

        `logit_rows` are rows of logits that are asked for beside the last one of each row.
        """
        if then.tokens <= self._granted.tokens and then.rows <= self._granted.rows and not logit_rows:
            return
        needed = self._needed(held, then) + logits_bytes(logit_rows, self._model.facts.vocabulary)
        free = self._free(self._model.device)
        if needed > free and self._model.caches.held_bytes:
            self._model.caches.clear()
            free = self._free(self._model.device)
        if needed > free:
            raise NoRoom(f"it needs about {bytes_text(needed)} of memory and {bytes_text(free)} are free")
        ahead = Extent(then.tokens + STRETCH_TOKENS, then.rows)
        self._granted = ahead if self._needed(held, ahead) <= free else then

    def _needed(self, held: Extent, then: Extent) -> int:
        """What is kept of the forward, and what it holds while it runs; rows are copied once they are read."""
        read = then.tokens - held.tokens
        read = min(read, PREFILL_CHUNK_TOKENS) if self._cached else read
        return self._kept(then) - self._kept(held) + self._passing(read * max(1, held.rows), then.tokens)

    def _kept(self, extent: Extent) -> int:
        spec, rows = self._model.spec, extent.rows
        cache = 0
        if self._cached and spec is not None and extent.tokens:
            cache = spec.used_bytes(extent.tokens, rows) + spec.state_bytes(rows)
        return cache + logits_bytes(rows, self._model.facts.vocabulary) * _LOGIT_COPIES

    def _passing(self, positions: int, keys: int) -> int:
        """Of a layer that reads `positions`, over all rows, each with up to `keys` before it: an estimate."""
        if self._widths is None:
            return 0
        width = int(self._model.module.dtype.itemsize)
        held = activation_bytes(positions, self._widths.hidden, self._widths.inner, width)
        if getattr(self._model.module.config, "_attn_implementation", None) == "eager":
            heads = self._model.spec.query_heads if self._model.spec is not None else None
            held += positions * keys * (heads or 1) * (2 * width + 4)  # scores, masked, and softmax in fp32
        return held

    @cached_property
    def _widths(self) -> Widths | None:
        return widths(self._model.module.config.to_dict())


def require_room(model: LoadedModel, prompt_tokens: int, lanes: int, *, cached: bool = True) -> None:
    """Refuse a run whose prompt, once for each lane, would not fit; nothing has been computed then."""
    try:
        Room(model, cached=cached).require(Extent(0, 0), Extent(prompt_tokens, lanes))
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
