"""What each layer of a model keeps, told from its config: keys and values, a latent, a state, nothing.

Knows configs as dictionaries and no length of text; which kind a layer is stands in `kinds`. Whatever
cannot be told is refused in one sentence, never guessed.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

from playground.core.config import (
    COUNT_LIMIT,
    Config,
    UnknownShape,
    count,
    count_if_any,
    family,
    is_count,
    part,
)
from playground.core.formats import Format
from playground.core.kinds import ALL_STATE, LAYERS_LIMIT, layer_kinds
from playground.core.states import State, state_of


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """What one layer keeps of a sequence.

    `kind` is full, sliding, chunked, latent, none, a state's kind, or `full + state-space` where a layer
    has both. A key is `head_dim` wide, a value `value_dim` (as the key where None). A latent is one vector
    for all heads and no value; `expanded` are the widths of the key and value that each head makes of it.
    `window` is None where every position is kept, else how many are.
    """

    kind: str
    kv_heads: int = 0
    head_dim: int = 0
    window: int | None = None
    value_dim: int | None = None
    expanded: tuple[int, int] | None = None
    state: State | None = None

    def numbers_per_token(self) -> int:
        """Scalars stored for one token: a key and a value for each KV head."""
        value_dim = self.head_dim if self.value_dim is None else self.value_dim
        return self.kv_heads * (self.head_dim + value_dim)

    def vector_bytes(self, form: Format) -> tuple[int, int]:
        """Bytes of one head's key and of its value, or of the latent and of nothing, for one token."""
        value_dim = self.head_dim if self.value_dim is None else self.value_dim
        return form.vector_bytes(self.head_dim), form.vector_bytes(value_dim)

    def bytes_per_token(self, form: Format) -> int:
        """Bytes that one token takes in this layer."""
        return self.kv_heads * sum(self.vector_bytes(form))

    def state_bytes(self, bytes_per_number: int) -> int:
        """Bytes of one sequence that do not grow."""
        return 0 if self.state is None else self.state.bytes(bytes_per_number)


def query_heads(config: Config) -> int:
    """Heads that ask, of which KV heads are at most as many; raises `UnknownShape`."""
    return count(config, "num_attention_heads", "n_head", "num_heads", "n_heads")


def layer_specs(config: Config) -> tuple[LayerSpec, ...]:
    """One entry a layer; raises `UnknownShape`."""
    _require_known(config)
    if family(config) not in ALL_STATE:
        query_heads(config)
    kinds = layer_kinds(config)
    if len(kinds) > LAYERS_LIMIT:
        raise UnknownShape(f"num_hidden_layers must be at most {LAYERS_LIMIT:,} in this config.")
    own, same = part(config, "per_layer_config"), cache(lambda kind: _layer(config, kind))
    changed = {int(place): dict(changes) for place, changes in own.items() if _is_place(place, changes)}
    attending = len(kinds) - _shared_layers(config, len(kinds))
    return tuple(
        LayerSpec("none") if i >= attending
        else _layer({**config, **changed[i]}, kind) if i in changed else same(kind)
        for i, kind in enumerate(kinds)
    )  # fmt: skip


def _shared_layers(config: Config, layers: int) -> int:
    """Layers at the end that read the cache of an earlier one and keep nothing."""
    shared = count_if_any(config, "num_kv_shared_layers") if config.get("num_kv_shared_layers") else None
    if shared is not None and shared >= layers:
        raise UnknownShape("num_kv_shared_layers must be fewer than all layers in this config.")
    return shared or 0


def _is_place(place: object, changes: object) -> bool:
    return (
        isinstance(place, str)
        and len(place) < 6
        and place.isascii()
        and place.isdigit()
        and isinstance(changes, dict)
    )


_OTHER_MEMORY = {
    "rwkv", "xlstm", "reformer", "xlnet", "minimax", "deepseek_v4", "mimo_v2_flash", "dory",
}  # fmt: skip
"""Families that keep something the arithmetic below does not describe."""


def _require_known(config: Config) -> None:
    if family(config) in _OTHER_MEMORY or any(
        config.get(name) for name in ("index_head_dim", "indexer_head_dim", "swa_head_dim")
    ):
        raise UnknownShape(
            "This family keeps more than keys, values, latents or a known state, which the arithmetic does "
            "not cover; nothing was computed."
        )


_WINDOWS = {"sliding": ("sliding_window", "attention_window_size"), "chunked": ("attention_chunk_size",)}


def _layer(config: Config, kind: str) -> LayerSpec:
    attention, _, second = kind.partition("+")
    if kind == "none":
        return LayerSpec("none")
    if kind == "state":
        state = _state(config)
        return LayerSpec(state.kind, state=state)
    window = count(config, *_WINDOWS[attention]) if attention in _WINDOWS else None
    kept = _latent(config, window) if config.get("kv_lora_rank") else _heads(config, attention, window)
    if not second:
        return LayerSpec(**kept)
    state = _state(config)
    return LayerSpec(**kept | {"kind": f"{attention} + {state.kind}"}, state=state)


def _state(config: Config) -> State:
    state = state_of(config)
    if state is None:
        raise UnknownShape("This config has layers with a constant state and does not tell its shape.")
    return state


def _latent(config: Config, window: int | None) -> dict[str, Any]:
    """Latent attention (DeepSeek-V2, arXiv:2405.04434): one compressed vector, and one rotated key."""
    rotated = count(config, "qk_rope_head_dim")
    plain, value = count_if_any(config, "qk_nope_head_dim"), count_if_any(config, "v_head_dim")
    return dict(
        kind="latent", kv_heads=1, head_dim=count(config, "kv_lora_rank") + rotated, value_dim=0,
        window=window, expanded=(plain + rotated, value) if plain and value else None,
    )  # fmt: skip


def _heads(config: Config, kind: str, window: int | None) -> dict[str, Any]:
    """Keys and values a head. An explicit head width wins; hidden size over heads only without one."""
    heads = query_heads(config)
    dim = next((config[n] for n in _dim_names(config, kind) if config.get(n) is not None), None)
    if dim is None:
        dim = _head_width(config, heads)
    kv_heads = _kv_heads(config, kind, heads)
    if not is_count(kv_heads) or not is_count(dim):
        raise UnknownShape(
            f"num_key_value_heads and head_dim must be whole numbers from 1 to {COUNT_LIMIT:,} in this config."
        )
    if heads % kv_heads:
        raise UnknownShape(
            f"This config has {heads:,} heads over {kv_heads:,} KV heads, which cannot share them evenly."
        )
    value = count_if_any(config, "v_head_dim")
    return dict(kind=kind, kv_heads=kv_heads, head_dim=dim, window=window, value_dim=value)


def _head_width(config: Config, heads: int) -> int:
    hidden = count(config, "hidden_size", "n_embd", "d_model")
    if hidden % heads:
        raise UnknownShape(
            f"This config has no head_dim, and its width of {hidden:,} is no multiple of its {heads:,} heads."
        )
    return hidden // heads


def _dim_names(config: Config, kind: str) -> tuple[str, ...]:
    own = ("global_head_dim",) if kind == "full" and "per_layer_config" not in config else ()
    return (*own, "head_dim", "attention_head_dim", "kv_channels")


def _kv_heads(config: Config, kind: str, heads: int) -> object:
    """A config without `num_key_value_heads` is multi-head, unless it says multi-query in its own way."""
    if family(config) == "falcon" or "new_decoder_architecture" in config:
        if config.get("new_decoder_architecture"):
            return config.get("num_kv_heads") or heads
        return 1 if config.get("multi_query", True) else heads
    if kind == "full" and config.get("attention_k_eq_v") and config.get("num_global_key_value_heads"):
        return config["num_global_key_value_heads"]
    if config.get("multi_query_attention") and config.get("multi_query_group_num"):
        return config["multi_query_group_num"]
    if family(config) == "gpt_bigcode":
        return 1 if config.get("multi_query", True) else heads
    given = config.get("num_key_value_heads")
    given = part(config, "attn_config").get("kv_n_heads") if given is None else given
    if given is not None:
        return given
    return 1 if config.get("multi_query") else heads
