"""The one file that touches transformers' cache classes, and the name of the cache argument.

`past_key_values` became `cache` during transformers 5; layers hide their tensors in several ways.
Everything else in the engine sees a cache only through these functions. Knows no run.
"""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer


@dataclass(frozen=True, slots=True)
class Measured:
    """Read from a live cache: positions, bytes in use by its tensors, bytes of the storages behind them."""

    tokens: int
    used_bytes: int | None
    allocated_bytes: int | None


def new_cache(module: Any) -> Any:
    """An empty cache that knows the model's layer kinds (without the config windows are kept in full)."""
    return DynamicCache(config=module.config)


@lru_cache(maxsize=16)
def _argument(forward: Any) -> tuple[str, bool]:
    parameters = inspect.signature(forward).parameters
    name = "cache" if "cache" in parameters else "past_key_values"
    return name, "logits_to_keep" in parameters


def forward(module: Any, ids: torch.Tensor, cache: Any) -> torch.Tensor:
    """One forward over `ids` (rows, positions) that also fills `cache`.

    Returns the logits of the last position alone, (rows, vocabulary), in fp32.
    """
    name, keeps = _argument(type(module).forward)
    extra: dict[str, Any] = {"logits_to_keep": 1} if keeps else {}
    output = module(input_ids=ids, use_cache=True, return_dict=True, **{name: cache}, **extra)
    logits: torch.Tensor = output.logits[:, -1, :].float()
    return logits.cpu() if logits.device.type == "mps" else logits  # choosing takes fp64, which MPS lacks


def measure(cache: Any) -> Measured:
    """The whole cache, all rows; bytes are None where its class hides them."""
    tensors = [t for t in _tensors(getattr(cache, "layers", None)) if t.dim() > 0]
    if not tensors:
        return Measured(tokens_held(cache), None, None)
    storages = {storage.data_ptr(): storage.nbytes() for storage in (t.untyped_storage() for t in tensors)}
    return Measured(tokens_held(cache), sum(t.nbytes for t in tensors), sum(storages.values()))


def tokens_held(cache: Any) -> int:
    """Positions in the cache, as the cache itself counts them."""
    return int(cache.get_seq_length())


def repeat_rows(cache: Any, rows: int) -> Any:
    """The one-row cache repeated for `rows` lanes (copies)."""
    if rows > 1:
        keep_rows(cache, [0] * rows)
    return cache


def keep_rows(cache: Any, rows: list[int]) -> None:
    """Keep `rows` of the batch, in that order, in place; a row may be named several times."""
    device = next(_tensors(cache.layers)).device
    cache.reorder_cache(torch.tensor(rows, device=device))


def can_crop(cache: Any) -> bool:
    """Whether the end of this cache can be taken off again: every layer keeps all its positions."""
    return all(type(layer) is DynamicLayer for layer in getattr(cache, "layers", [None]))


def crop(cache: Any, tokens: int) -> None:
    """Shorten a croppable cache to its first `tokens` positions."""
    surplus = tokens_held(cache) - tokens
    if surplus > 0:
        cache.crop(-surplus)


def _tensors(value: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif type(value) is DynamicLayer and value.is_initialized:  # the usual kind hides nothing
        yield value.keys
        yield value.values
    elif isinstance(value, dict):
        yield from (t for item in value.values() for t in _tensors(item, depth + 1))
    elif isinstance(value, list | tuple):
        yield from (t for item in value for t in _tensors(item, depth + 1))
    elif hasattr(value, "__dict__") and depth < 6 and not isinstance(value, torch.nn.Module):
        yield from _tensors(vars(value), depth + 1)
