"""What kind each layer of a model is, told from its config: a list in it, or a rule of its family.

Follows transformers' configs, old names and new. Knows nothing of what a kind keeps; a word or a family
that is not known is refused in one sentence, never guessed.
"""

from playground.core.config import Config, UnknownShape, count, count_if_any, family, is_count, part
from playground.core.states import state_of

LAYERS_LIMIT = 10_000

_NAMES = {
    "full_attention": "full", "attention": "full", "full": "full", "*": "full",
    "sliding_attention": "sliding", "sliding": "sliding", "chunked_attention": "chunked",
    "linear_attention": "state", "mamba": "state", "recurrent": "state", "conv": "state", "M": "state",
    "hybrid": "full+state", "hybrid_sliding": "sliding+state",
    "moe": "none", "mlp": "none", "-": "none", "E": "none",
}  # fmt: skip
"""The words of `layer_types` and its older forms; the single letters are Nemotron's pattern."""

_FULL_EVERY = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2}
"""Families whose configs may leave out `layer_types`: one layer in so many has full attention."""

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")

ALL_STATE = {"mamba", "mamba2", "falcon_mamba"}
"""Families of which no layer attends."""


def layer_kinds(config: Config) -> list[str]:
    """One word a layer: full, sliding, chunked, state, none, `full+state` or `sliding+state`.

    Raises `UnknownShape`.
    """
    count_if_any(config, *_LAYERS)  # a number of layers that cannot be one is refused beside a list, too
    listed = _listed(config)
    if listed is not None:
        return listed
    layers = _layer_count(config)
    return _by_family(config, layers) or _by_window(config, layers)


def _layer_count(config: Config) -> int:
    layers = count(config, *_LAYERS)
    if layers > LAYERS_LIMIT:
        raise UnknownShape(f"num_hidden_layers must be at most {LAYERS_LIMIT:,} in this config.")
    return 2 * layers if family(config) == "longcat_flash" else layers  # two attentions in each


def _listed(config: Config) -> list[str] | None:
    for name in ("layer_types", "layers_block_type", "hybrid_override_pattern"):
        types = config.get(name)
        if isinstance(types, list | tuple | str) and (types or name == "layer_types"):
            return _for_each_layer([_kind(word, config) for word in types], name, config)
    return None


def _for_each_layer(kinds: list[str], name: str, config: Config) -> list[str] | None:
    """`kinds` where they are one a layer, else refused, as transformers does; None where no layer is told of.

    What stands after the layers is left out where it is as many as guess tokens ahead. A Nemotron-H has as
    many layers as its list, whatever else the config says.
    """
    counted = next((count for count in _LAYERS if config.get(count) is not None), None)
    if counted is None or family(config) == "nemotron_h":
        return kinds or None
    layers = count(config, counted)
    ahead = config.get("num_nextn_predict_layers")
    if is_count(ahead) and len(kinds) == layers + ahead:
        return kinds[:layers]
    if len(kinds) != layers:
        raise UnknownShape(
            f"{name} lists {len(kinds):,} layers where {counted} says {layers:,} in this config; nothing was computed."
        )
    return kinds


def _kind(word: object, config: Config) -> str:
    if not isinstance(word, str) or word not in _NAMES:
        raise UnknownShape(f"A layer of the kind {repr(word)[:60]} is not known; nothing was computed.")
    if word == "attention" and config.get("attention_window_size"):
        return "sliding"
    return _NAMES[word]


def _by_family(config: Config, layers: int) -> list[str] | None:
    """Kinds by the rule of a family with states or chunks; None where there is none in this config."""
    if family(config) in ALL_STATE:
        return ["state"] * layers
    if family(config) == "falcon_h1":
        return ["full+state"] * layers
    full = _full_layers(config, layers)
    if full is not None:
        other = "chunked" if config.get("attention_chunk_size") else "state"
        return ["full" if layer in full else other for layer in range(layers)]
    pattern = config.get("block_types") or config.get("_block_types")
    if isinstance(pattern, list | tuple) and pattern:
        return [_kind(pattern[layer % len(pattern)], config) for layer in range(layers)]
    if state_of(config) is not None:
        raise UnknownShape("This config has layers with a constant state and does not tell which they are.")
    return None


def _full_layers(config: Config, layers: int) -> set[int] | None:
    """The layers with full attention among others, where the config marks them out."""
    for name in ("attn_layer_indices", "full_attn_idxs"):
        if isinstance(config.get(name), list | tuple):
            return {place for place in config[name] if isinstance(place, int)}
    delta = part(config, "linear_attn_config").get("full_attn_layers")
    if isinstance(delta, list | tuple):
        return {place - 1 for place in delta if isinstance(place, int)}  # they count from 1
    if period := count_if_any(config, "attn_layer_period"):
        offset = config.get("attn_layer_offset")
        return {layer for layer in range(layers) if layer % period == offset}
    if config.get("attention_chunk_size"):
        return _without_chunks(config, layers)
    every = count_if_any(config, "full_attention_interval")
    if every is None and family(config) in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"):
        every = 4
    return None if every is None else {layer for layer in range(layers) if (layer + 1) % every == 0}


def _without_chunks(config: Config, layers: int) -> set[int]:
    rope = config.get("no_rope_layers")  # 1 where positions are rotated, and those layers are chunked
    if isinstance(rope, list | tuple) and rope:
        return {layer for layer, rotated in enumerate(rope) if not rotated}
    every = count_if_any(config, "no_rope_layer_interval") or 4
    return {layer for layer in range(layers) if (layer + 1) % every == 0}


def _by_window(config: Config, layers: int) -> list[str]:
    if not config.get("sliding_window") or not config.get("use_sliding_window", True):
        return ["full"] * layers
    every = config.get("sliding_window_pattern") or _FULL_EVERY.get(family(config))
    if is_count(every):
        return ["sliding" if (layer + 1) % every else "full" for layer in range(layers)]
    first = config.get("max_window_layers") if config.get("use_sliding_window") else 0
    return ["full" if is_count(first) and layer < first else "sliding" for layer in range(layers)]
