"""KV-cache arithmetic: from a model's config to bytes.

For each layer that keeps keys and values,

    bytes per token = 2 (key and value) x KV heads x head dimension x bytes per number

(Ainslie et al. 2023, arXiv:2305.13245, for the grouping of query heads over KV heads). A latent layer
keeps one shared vector instead; a layer with a constant state does not grow at all, and its bytes are
counted apart. What a layer keeps stands in `layers`. Knows configs as dictionaries, and no running model;
what a live cache really holds is measured by the engine and set beside this.
"""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby

from playground.core.config import Config, UnknownShape, is_count, text_config
from playground.core.formats import FORMATS, Format
from playground.core.layers import LayerSpec, layer_specs, query_heads

__all__ = ["FORMATS", "CacheSpec", "LayerSpec", "UnknownShape", "cache_spec", "is_count", "text_config"]

STATE_BYTES_AT_LEAST = 2
"""Of a constant state's number: what quantises keys and values leaves it in 16 bits."""


@dataclass(frozen=True, slots=True)
class CacheSpec:
    """The cache of a whole model, layer by layer, in one dtype.

    `query_heads` is None where no layer attends. Used and allocated bytes are of what grows with the
    tokens (keys, values, latents); `state_bytes` is the rest, the same at every length.
    """

    layers: tuple[LayerSpec, ...]
    query_heads: int | None
    dtype: str

    @property
    def format(self) -> Format:
        """How keys and values are stored."""
        return FORMATS[self.dtype]

    @property
    def bytes_per_number(self) -> int:
        """Bytes of one scalar stored alone."""
        return self.format.vector_bytes(1) - self.format.group_bytes

    @property
    def bytes_per_token(self) -> int:
        """Bytes that one sequence at one token holds, over all layers, states apart."""
        return self.used_bytes(1)

    def used_bytes(self, tokens: int, sequences: int = 1) -> int:
        """Bytes in use at `tokens` positions a sequence; a window stops growing at its length."""
        growth = self.growth().items()
        return sum(each * min(tokens, window or tokens) for window, each in growth) * sequences

    def growth(self) -> dict[int | None, int]:
        """Bytes a token adds to all layers of one window (None: no window) until it is full."""
        added: Counter[int | None] = Counter()
        for layer, count in Counter(self.layers).items():
            added[layer.window] += layer.bytes_per_token(self.format) * count
        return dict(added)

    def allocated_bytes(self, tokens: int, sequences: int = 1) -> int:
        """Bytes reserved by an engine that does not exploit windows: every layer at full length."""
        return sum(self.growth().values()) * tokens * sequences

    def state_bytes(self, sequences: int = 1) -> int:
        """Bytes of constant state, from the first token on, however long the sequences are."""
        return sum(self.layer_state_bytes(layer) for layer in self.layers) * sequences

    def layer_state_bytes(self, layer: LayerSpec) -> int:
        """Bytes of one layer's constant state, of one sequence."""
        return layer.state_bytes(max(STATE_BYTES_AT_LEAST, self.bytes_per_number))

    def with_kv_heads(self, kv_heads: int) -> "CacheSpec":
        """The same model had it this many KV heads (its query heads: MHA; 1: MQA).

        Raises `UnknownShape` where a latent's expanded width is not known.
        """
        return replace(self, layers=tuple(_with_kv_heads(layer, kv_heads) for layer in self.layers))

    def grouped(self) -> list[tuple[LayerSpec, int]]:
        """Equal neighbours counted together, in order."""
        return [(layer, len(list(run))) for layer, run in groupby(self.layers)]


def cache_spec(config: Config, dtype: str | None = None) -> CacheSpec:
    """Read a transformers `config.json` dictionary.

    An explicit `head_dim` wins; hidden size over heads only without one (Qwen3-0.6B has head_dim
    128 where the division gives 64). A config without `num_key_value_heads` is multi-head. The
    dtype is the argument's, else the config's, else 16-bit. Raises `UnknownShape`.
    """
    outer, config = config, text_config(config)
    layers = layer_specs(config)
    heads = query_heads(config) if any(layer.kv_heads for layer in layers) else None
    named = (c.get(key) for c in (config, outer) for key in ("dtype", "torch_dtype"))
    return CacheSpec(layers, heads, _dtype_name(next(filter(None, named), None) if dtype is None else dtype))


def _with_kv_heads(layer: LayerSpec, kv_heads: int) -> LayerSpec:
    if not layer.kv_heads:
        return layer
    if layer.kind != "latent":
        return replace(layer, kv_heads=kv_heads)
    if layer.expanded is None:
        raise UnknownShape("This config does not tell how wide its keys and values are without the latent.")
    key, value = layer.expanded
    return LayerSpec("full", kv_heads, key, layer.window, value)


def _dtype_name(dtype: object) -> str:
    name = "bfloat16" if dtype is None else str(dtype).removeprefix("torch.")
    if name not in FORMATS:
        raise UnknownShape(f"dtype {name[:60]!r} is not known; use one of {', '.join(FORMATS)}.")
    return name
