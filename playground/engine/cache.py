"""The one file that touches transformers' cache classes, and the name of the cache argument.

`past_key_values` became `cache` during transformers 5; layers hide their tensors in several ways.
Everything else in the engine sees a cache only through these functions. Knows no run.
"""

import inspect
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from playground.core.events import LayerKv

Obstacle = Literal["state", "window", "other"]
"""What keeps a cache from being cropped: a running state, a window that has moved on, or an unknown kind."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Read from a live cache: positions, and bytes where its class shows them.

    `used_bytes` are those of keys, values and latents, which grow with the tokens, `allocated_bytes` those
    of the storages behind them; `state_bytes` are of the layers whose state has one size at any length.
    """

    tokens: int
    used_bytes: int | None
    allocated_bytes: int | None
    state_bytes: int | None = None

    @property
    def held_bytes(self) -> int | None:
        """All the memory that the cache takes; None where its class hides it."""
        if self.allocated_bytes is None or self.state_bytes is None:
            return None
        return self.allocated_bytes + self.state_bytes


ROOM_TOKENS = 256
"""A growing layer reserves whole multiples of so many positions."""


class GrowingLayer(DynamicLayer):
    """Keys and values as the front of a larger buffer, so that a step writes one position.

    The class it stands for copies the whole past into a new tensor at each step: at 4,000 tokens of the
    default model that is 370 MB of traffic beside 540 MB of weights.
    """

    keys: torch.Tensor
    values: torch.Tensor
    _room: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append (rows, heads, positions, width); all keys and all values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        begin = self.get_seq_length()
        count = key_states.shape[-2]
        if self._room is None or self._room[0].shape[-2] < begin + count:
            room = begin, begin + count
            self._room = (
                _with_room(self.keys, key_states, *room),
                _with_room(self.values, value_states, *room),
            )
        keys, values = self._room
        keys.narrow(-2, begin, count).copy_(key_states)
        values.narrow(-2, begin, count).copy_(value_states)
        self.keys, self.values = keys.narrow(-2, 0, begin + count), values.narrow(-2, 0, begin + count)
        return self.keys, self.values

    def held_bytes(self) -> tuple[int, int]:
        """Of the positions in use, and of the buffers that they are the front of."""
        keys, values = self._room or (self.keys, self.values)
        return self.keys.nbytes + self.values.nbytes, keys.nbytes + values.nbytes

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Select rows; they are copied, and the copy has no room yet."""
        super().reorder_cache(beam_idx)
        self._room = None

    def reset(self) -> None:
        """Forget everything."""
        super().reset()
        self._room = None


_PLAIN = (DynamicLayer, GrowingLayer)


def _with_room(held: torch.Tensor, new: torch.Tensor, tokens: int, wanted: int) -> torch.Tensor:
    """A buffer of at least `wanted` positions, shaped as `new`, that begins with the `tokens` of `held`."""
    rows, heads, _, width = new.shape
    room = new.new_empty(rows, heads, -(-wanted // ROOM_TOKENS) * ROOM_TOKENS, width)
    if tokens:
        room.narrow(-2, 0, tokens).copy_(held)
    return room


def new_cache(module: Any) -> Any:
    """An empty cache that knows the model's layer kinds (without the config windows are kept in full)."""
    cache = DynamicCache(config=module.config)
    cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    if getattr(cache, "layer_class_to_replicate", None) is DynamicLayer:
        cache.layer_class_to_replicate = GrowingLayer
    return cache


_ARGUMENT_NAMES = ("cache", "past_key_values", "cache_params")
"""The newest name first; state-space models had the last one to themselves in 5.17."""


@dataclass(frozen=True, slots=True)
class _Arguments:
    """What a model's forward takes, read from its signature."""

    cache: str
    keeps: bool
    places: bool


@lru_cache(maxsize=16)
def _arguments(forward: Any) -> _Arguments:
    parameters = inspect.signature(forward).parameters
    name = next((name for name in _ARGUMENT_NAMES if name in parameters), _ARGUMENT_NAMES[0])
    return _Arguments(name, "logits_to_keep" in parameters, "position_ids" in parameters)


def forward(module: Any, ids: torch.Tensor, cache: Any) -> torch.Tensor:
    """One forward over `ids` (rows, positions) that also fills `cache`; None runs without a cache.

    Returns the logits of the last position alone, (rows, vocabulary), in fp32.
    """
    return forward_all(module, ids, cache, 1)[:, -1, :].float()


def forward_all(module: Any, ids: torch.Tensor, cache: Any, keep: int) -> torch.Tensor:
    """As `forward`, with the logits of the last `keep` positions, (rows, keep, vocabulary), in the model's dtype.

    Who asks bounds `keep`: at a vocabulary of 152 k a position takes 0.6 MB in fp32.
    """
    logits = _logits(module, ids, cache, keep)[:, -keep:, :]
    return logits.cpu() if logits.device.type == "mps" else logits  # choosing takes fp64, which MPS lacks


def _logits(module: Any, ids: torch.Tensor, cache: Any, keep: int) -> torch.Tensor:
    takes, tokens = _arguments(type(module).forward), 0 if cache is None else tokens_held(cache)
    given: dict[str, Any] = {"use_cache": cache is not None}
    if cache is not None:
        given[takes.cache] = cache
    if takes.keeps:
        given["logits_to_keep"] = keep
    if takes.places:  # given as `generate` does: some models (bamba) count anew in each forward without
        given["position_ids"] = torch.arange(tokens, tokens + ids.shape[1], device=ids.device).expand_as(ids)
    logits: torch.Tensor = module(input_ids=ids, return_dict=True, **given).logits
    if cache is not None:
        cache.tokens_read = tokens + ids.shape[1]
    return logits


def measure(cache: Any) -> Measured:
    """The whole cache, all rows; bytes are None where its class hides them, all is 0 without a cache."""
    if cache is None:
        return Measured(0, 0, 0, 0)
    layers = getattr(cache, "layers", None)
    if layers and all(type(layer) is GrowingLayer and layer.is_initialized for layer in layers):
        used, allocated = (
            sum(column) for column in zip(*(layer.held_bytes() for layer in layers), strict=True)
        )
        return Measured(tokens_held(cache), used, allocated, 0)
    tensors = [t for t in _tensors(getattr(cache, "layers", None)) if t.dim() > 0]
    if not tensors:
        return Measured(tokens_held(cache), None, None)
    states = {id(t): t.nbytes for layer in cache.layers for t in _states(layer)}
    growing = [t for t in tensors if id(t) not in states]
    storages = {storage.data_ptr(): storage.nbytes() for storage in (t.untyped_storage() for t in growing)}
    return Measured(
        tokens_held(cache), sum(t.nbytes for t in growing), sum(storages.values()), sum(states.values())
    )


def measure_layers(cache: Any, rows: int) -> tuple[LayerKv, ...]:
    """Each layer of one of `rows` sequences; empty where the cache's class hides its tensors, and without one."""
    read = tuple(_layer_kv(layer, rows) for layer in getattr(cache, "layers", None) or ())
    return read if any(layer.allocated_bytes or layer.state_bytes for layer in read) else ()


def _layer_kv(layer: Any, rows: int) -> LayerKv:
    states = {id(t): t.nbytes for t in _states(layer)}
    growing = [t for t in _tensors(layer) if t.dim() > 0 and id(t) not in states]
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in growing}
    used, allocated, state = sum(t.nbytes for t in growing), sum(storages.values()), sum(states.values())
    return LayerKv(used // rows, allocated // rows, state // rows)


def _states(layer: Any) -> Iterator[torch.Tensor]:
    """The tensors of a layer that have one size however many tokens it has read."""
    if type(layer) not in _PLAIN:
        for name in ("conv_states", "recurrent_states"):
            yield from _tensors(getattr(layer, name, None))


def keys_and_values(cache: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Of each layer that keeps some: (rows, heads, positions, width), what it holds of the past now."""
    layers = (layer for layer in cache.layers if isinstance(getattr(layer, "keys", None), torch.Tensor))
    return [(layer.keys, layer.values) for layer in layers if layer.keys.dim() == 4]


def tokens_held(cache: Any) -> int:
    """Positions that went into the cache, as it counts them; where only states are kept, as `forward` did."""
    try:
        return int(cache.get_seq_length())
    except ValueError:  # no layer has positions
        return int(getattr(cache, "tokens_read", 0))


def repeat_rows(cache: Any, rows: int) -> Any:
    """The one-row cache repeated for `rows` lanes (copies)."""
    if rows > 1:
        keep_rows(cache, [0] * rows)
    return cache


def keep_rows(cache: Any, rows: list[int]) -> None:
    """Keep `rows` of the batch, in that order, in place; a row may be named several times."""
    device = next(_tensors(cache.layers)).device
    cache.reorder_cache(torch.tensor(rows, device=device))


def crop_obstacle(cache: Any) -> Obstacle | None:
    """Why the end of this cache cannot be taken off again; None where it can.

    Asked of what the layers hold now, since the classes' own `is_croppable` also promises it for a window
    that has moved on. One that has not moved yet still holds every position, and is cut exactly.
    """
    tokens = tokens_held(cache)
    found = (_layer_obstacle(layer, tokens) for layer in getattr(cache, "layers", [None]))
    return next(filter(None, found), None)


def _layer_obstacle(layer: Any, tokens: int) -> Obstacle | None:
    tensors = [t for t in _tensors(layer) if t.dim() > 0]
    if not tensors and layer is not None:  # shares another layer's keys, or has no attention
        return None
    if getattr(layer, "conv_states", None) is not None:
        return "state"
    if not isinstance(layer, DynamicLayer) or not layer.is_initialized or layer.keys.dim() != 4:
        return "other"
    if layer.keys.shape[-2] != tokens or layer.values.shape[-2] != tokens:
        return "window" if getattr(layer, "is_sliding", False) else "other"
    return None if _storages(tensors) <= _storages([layer.keys, layer.values]) else "other"


def fork(cache: Any, tokens: int, rows: list[int]) -> Any | None:
    """The first `tokens` positions of `rows`, as a cache of its own; None where that cannot be had.

    The original stays as it is. Positions are copied for real: the next forward would copy them anyway
    (or write behind them in place), and a copy holds no room that the original reserves.
    """
    surplus = tokens_held(cache) - tokens
    if surplus > 0 and crop_obstacle(cache) is not None:
        return None
    twin = copy(cache)
    twin.layers = [_twin(layer) for layer in cache.layers]
    for layer in twin.layers if surplus > 0 else ():
        if getattr(layer, "keys", None) is not None:
            layer.crop(-surplus)  # new releases take a negative count alone
    keep_rows(twin, rows)
    shared = _storages(_tensors(twin.layers)) & _storages(_tensors(cache.layers))
    return None if shared else twin  # a kind that `reorder_cache` does not copy whole


def _twin(layer: Any) -> Any:
    """The layer with attributes, and dictionaries of tensors, of its own; the tensors are the same."""
    twin = copy(layer)
    vars(twin).update({name: copy(value) for name, value in vars(layer).items() if isinstance(value, dict)})
    return twin


def _storages(tensors: Iterable[torch.Tensor]) -> set[int]:
    return {t.untyped_storage().data_ptr() for t in tensors if t.dim() > 0 and t.numel()}


def _tensors(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif type(value) in _PLAIN and value.is_initialized:  # the usual kinds hide nothing
        yield value.keys
        yield value.values
    elif isinstance(value, dict):
        yield from (t for item in value.values() for t in _tensors(item, depth + 1))
    elif isinstance(value, list | tuple):
        yield from (t for item in value for t in _tensors(item, depth + 1))
    elif hasattr(value, "__dict__") and depth < 6 and not isinstance(value, torch.nn.Module):
        yield from _tensors(vars(value), depth + 1)
