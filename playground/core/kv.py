"""KV-cache arithmetic: from a model's config to bytes.

For each layer that keeps keys and values,

    bytes per token = 2 (key and value) x KV heads x head dimension x bytes per number

(Ainslie et al. 2023, arXiv:2305.13245, for the grouping of query heads over KV heads). Knows
configs as dictionaries, and no running model; what a live cache really holds is measured by the
engine and set beside this.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeGuard

from playground.core.refusal import Refused

DTYPE_BYTES = {
    "float32": 4, "bfloat16": 2, "float16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1,
}  # fmt: skip

LAYERS_LIMIT = 10_000
COUNT_LIMIT = 10**9
"""Of heads, dimensions and windows: far above any model, and products of it stay numbers."""


class UnknownShape(Refused, ValueError):
    """A config from which the cache's shape cannot be told; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """What one layer keeps. `window` is None for full attention, else its length in tokens."""

    kind: str
    kv_heads: int
    head_dim: int
    window: int | None = None

    def numbers_per_token(self) -> int:
        """Scalars stored for one token: a key and a value for each KV head."""
        return 2 * self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """The cache of a whole model, layer by layer, in one dtype."""

    layers: tuple[LayerSpec, ...]
    query_heads: int
    dtype: str

    @property
    def bytes_per_number(self) -> int:
        """Bytes of one stored scalar."""
        return DTYPE_BYTES[self.dtype]

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one sequence at one token holds, over all layers."""
        return self.used_bytes(1)

    def used_bytes(self, tokens: int, sequences: int = 1) -> int:
        """Bytes in use at `tokens` positions a sequence; a window stops growing at its length."""
        per_sequence = sum(
            layer.numbers_per_token() * min(tokens, layer.window or tokens) for layer in self.layers
        )
        return per_sequence * self.bytes_per_number * sequences

    def allocated_bytes(self, tokens: int, sequences: int = 1) -> int:
        """Bytes reserved by an engine that does not exploit windows: every layer at full length."""
        per_token = sum(layer.numbers_per_token() for layer in self.layers)
        return per_token * tokens * self.bytes_per_number * sequences

    def with_kv_heads(self, kv_heads: int) -> "CacheSpec":
        """The same model had it this many KV heads (its query heads: MHA; 1: MQA)."""
        layers = tuple(LayerSpec(s.kind, kv_heads, s.head_dim, s.window) for s in self.layers)
        return CacheSpec(layers, self.query_heads, self.dtype)

    def grouped(self) -> list[tuple[LayerSpec, int]]:
        """Equal neighbours counted together, in order."""
        return [(layer, len(list(run))) for layer, run in groupby(self.layers)]


def cache_spec(config: Mapping[str, Any], dtype: str | None = None) -> CacheSpec:
    """Read a transformers `config.json` dictionary.

    An explicit `head_dim` wins; hidden size over heads only without one (Qwen3-0.6B has head_dim
    128 where the division gives 64). A config without `num_key_value_heads` is multi-head. The
    dtype is the argument's, else the config's, else 16-bit. Raises `UnknownShape`.
    """
    outer, config = config, text_config(config)
    query_heads = _positive(config, "num_attention_heads", "n_head", "num_heads")
    layer_count = _positive(config, "num_hidden_layers", "n_layer", "num_layers")
    if layer_count > LAYERS_LIMIT:
        raise UnknownShape(f"num_hidden_layers must be at most {LAYERS_LIMIT:,} in this config.")
    if config.get("kv_lora_rank") or _has_state_layers(config):
        raise UnknownShape(
            "This config has latent attention or layers with a constant state, which the "
            "arithmetic does not cover yet; nothing was computed."
        )
    kv_heads = config.get("num_key_value_heads")
    if kv_heads is None:
        kv_heads = 1 if config.get("multi_query") else query_heads
    head_dim = config.get("head_dim") or _positive(config, "hidden_size", "n_embd") // query_heads
    if not is_count(kv_heads) or not is_count(head_dim):
        raise UnknownShape(
            f"num_key_value_heads and head_dim must be whole numbers from 1 to {COUNT_LIMIT:,} in this config."
        )
    kinds = _layer_kinds(config, layer_count)
    windows = {kind: _window(config, kind) for kind in set(kinds)}
    layers = tuple(LayerSpec(kind, kv_heads, head_dim, windows[kind]) for kind in kinds)
    named = (dtype, *(c.get(key) for c in (config, outer) for key in ("dtype", "torch_dtype")))
    return CacheSpec(layers, query_heads, _dtype_name(next(filter(None, named), None)))


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The language model's part of a config that also describes eyes or ears."""
    inner = config.get("text_config")
    return inner if isinstance(inner, Mapping) and inner else config


_FULL_EVERY = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4}
"""Families whose configs may leave out `layer_types`: one layer in so many has full attention."""


def _layer_kinds(config: Mapping[str, Any], layer_count: int) -> list[str]:
    types = config.get("layer_types")
    if isinstance(types, list | tuple) and types:
        return [_kind(str(name)) for name in types]
    if not config.get("sliding_window") or not config.get("use_sliding_window", True):
        return ["full"] * layer_count
    every = config.get("sliding_window_pattern") or _FULL_EVERY.get(str(config.get("model_type")))
    if is_count(every):
        return ["sliding" if (layer + 1) % every else "full" for layer in range(layer_count)]
    first = config.get("max_window_layers") if config.get("use_sliding_window") else 0
    return ["full" if is_count(first) and layer < first else "sliding" for layer in range(layer_count)]


def _kind(name: str) -> str:
    return "sliding" if "sliding" in name else "chunked" if "chunked" in name else "full"


def _window(config: Mapping[str, Any], kind: str) -> int | None:
    key = {"sliding": "sliding_window", "chunked": "attention_chunk_size"}.get(kind)
    if key is None:
        return None
    return _positive(config, key)


def _has_state_layers(config: Mapping[str, Any]) -> bool:
    types = str(config.get("layer_types") or "")
    return any(word in types for word in ("linear", "mamba", "recurrent", "conv")) or "state_size" in config


def is_count(value: object) -> TypeGuard[int]:
    """Whether `value` can count something in a config: a whole number from 1 to `COUNT_LIMIT`."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= COUNT_LIMIT


def _positive(config: Mapping[str, Any], *names: str) -> int:
    for name in names:
        value = config.get(name)
        if value is not None:
            if not is_count(value):
                allowed = f"{name} must be a whole number above 0 and at most {COUNT_LIMIT:,} in this config"
                raise UnknownShape(f"{allowed}, not {repr(value)[:60]}.")
            return int(value)
    raise UnknownShape(f"This config has no {names[0]}, so its KV cache cannot be computed.")


def _dtype_name(dtype: object) -> str:
    name = str(dtype or "bfloat16").removeprefix("torch.")
    if name not in DTYPE_BYTES:
        raise UnknownShape(f"dtype {name[:60]!r} is not known; use one of {', '.join(DTYPE_BYTES)}.")
    return name
