"""What a config costs in memory, as the JSON object of `first-token kv` and of the page's endpoint.

Arithmetic only; nothing here was measured. Knows configs as dictionaries.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from playground.core import fits
from playground.core.decoding import InvalidSetting, require_whole
from playground.core.ghosts import ghosts
from playground.core.kv import FORMATS, CacheSpec, LayerSpec, UnknownShape, cache_spec, is_count, text_config

_LLAMA_LIKE = {"llama", "mistral", "qwen2", "qwen3"}
TOKENS_LIMIT = 10**9
SEQUENCES_LIMIT = 10**6
MEMORY_LIMIT_BYTES = 2**50


def kv_report(
    config: Mapping[str, Any],
    tokens: int = 4096,
    sequences: int = 1,
    dtype: str | None = None,
    weights_dtype: str | None = None,
    parameters: int | None = None,
    memory_bytes: int | None = None,
) -> dict[str, Any]:
    """The KV cache of `sequences` sequences at `tokens` tokens each.

    `bytes_per_token` is of one sequence; a layer's is of one layer, of which there are `count`. `token` draws
    it down: a key, a head of a layer, a layer, all layers. `if_mha_bytes` and `if_mqa_bytes` are
    `used_bytes` had every query head, or just one head, its own keys and values; None where no layer attends
    or a latent does not tell; `ghosts` are these and other kinds. `state_bytes` is the constant state of all
    sequences, which is in none of the others. `weights_bytes` are in `weights_dtype` (the cache's where that
    is None); where the family is not counted here they stand on `parameters`, None without. `fit` is
    against `memory_bytes`, where that is given. Raises `UnknownShape`, and `InvalidSetting` for counts out of
    range.
    """
    require_whole("tokens", tokens, 1, TOKENS_LIMIT)
    require_whole("sequences", sequences, 1, SEQUENCES_LIMIT)
    spec = cache_spec(config, dtype)
    weights_dtype = _weights_dtype(spec.dtype if weights_dtype is None else weights_dtype)
    counted = parameter_count(config, spec)
    parameters = parameters if counted is None else counted
    weights = None if parameters is None else FORMATS[weights_dtype].vector_bytes(parameters)
    return {
        "bytes_per_token": spec.bytes_per_token,
        "used_bytes": spec.used_bytes(tokens, sequences),
        "allocated_bytes": spec.allocated_bytes(tokens, sequences),
        "state_bytes": spec.state_bytes(sequences),
        "layers": _layers(spec),
        "token": drawn_down(spec),
        "if_mha_bytes": _if_heads(spec, spec.query_heads, tokens, sequences),
        "if_mqa_bytes": _if_heads(spec, spec.query_heads and 1, tokens, sequences),
        "ghosts": [asdict(ghost) for ghost in ghosts(spec, tokens, sequences)],
        "weights_bytes": weights,
        "parameters": parameters,
        "activation_bytes_estimated": fits.activation_bytes(config, tokens, sequences),
        "tokens": tokens,
        "sequences": sequences,
        "dtype": spec.dtype,
        "weights_dtype": weights_dtype,
        "bits_per_number": spec.format.bits_with_overhead,
        "query_heads": spec.query_heads,
        "context": context_tokens(config),
        "fit": None if memory_bytes is None else _fit(config, spec, weights, memory_bytes, tokens, sequences),
    }


def drawn_down(spec: CacheSpec) -> dict[str, int] | None:
    """One token's bytes, from the whole down to one key of the layer kind most layers are of.

    `layers` are as many as that; `all_layers_bytes` counts every layer. None where no layer attends.
    """
    attending = [layer for layer in spec.layers if layer.kv_heads]
    if not attending:
        return None
    kept = Counter((layer.kv_heads, layer.head_dim, layer.value_dim) for layer in attending)
    (kv_heads, head_dim, value_dim), layers = kept.most_common(1)[0]
    key, value = LayerSpec("full", kv_heads, head_dim, value_dim=value_dim).vector_bytes(spec.format)
    return {
        "head_dim": head_dim,
        "key_bytes": key,
        "value_bytes": value,
        "head_bytes": key + value,
        "kv_heads": kv_heads,
        "layer_bytes": kv_heads * (key + value),
        "layers": layers,
        "all_layers_bytes": spec.bytes_per_token,
    }


def _fit(
    config: Mapping[str, Any],
    spec: CacheSpec,
    weights: int | None,
    memory_bytes: int,
    tokens: int,
    sequences: int,
) -> dict[str, Any]:
    require_whole("memory_bytes", memory_bytes, 1, MEMORY_LIMIT_BYTES)
    limits = (TOKENS_LIMIT, SEQUENCES_LIMIT)
    found = fits.Plan(config, spec, weights).fit(memory_bytes, tokens, sequences, limits)
    return {
        "memory_bytes": memory_bytes,
        "total_bytes": found.need.total_bytes,
        "fits": found.fits,
        "largest_sequences": found.largest_sequences,
        "largest_tokens": found.largest_tokens,
    }


def _weights_dtype(name: str) -> str:
    if name not in FORMATS:
        raise InvalidSetting(f"weights_dtype must be one of {', '.join(FORMATS)}, not {name[:60]!r}.")
    return name


def parameter_count(config: Mapping[str, Any], spec: CacheSpec) -> int | None:
    """Parameters of a Llama-like model; None for other families.

    Counted as transformers builds them: embeddings, per layer four attention projections, a gated
    feed-forward of three, two norms (Qwen2 adds biases, Qwen3 a norm for queries and for keys), a last norm,
    and an output matrix where it is not the embeddings again.
    """
    unlike = config.get("mlp_bias") or config.get("quantization_config")
    hidden, inner, vocabulary = (
        config.get(name) for name in ("hidden_size", "intermediate_size", "vocab_size")
    )
    if str(config.get("model_type")) not in _LLAMA_LIKE or unlike:
        return None
    if not is_count(hidden) or not is_count(inner) or not is_count(vocabulary):
        return None
    layers = sum(_layer_weights(config, spec, i, hidden, inner) for i in range(len(spec.layers)))
    matrices = 1 if config.get("tie_word_embeddings") else 2
    return layers + matrices * vocabulary * hidden + hidden


def _layer_weights(config: Mapping[str, Any], spec: CacheSpec, index: int, hidden: int, inner: int) -> int:
    layer = spec.layers[index]
    queries, keys = (spec.query_heads or 0) * layer.head_dim, layer.kv_heads * layer.head_dim
    attention = hidden * queries * 2 + hidden * keys * 2
    if config["model_type"] == "qwen2":
        attention += queries + 2 * keys
    elif config.get("attention_bias"):
        attention += queries + 2 * keys + hidden
    if config["model_type"] == "qwen3":
        attention += 2 * layer.head_dim
    return attention + 3 * hidden * inner + 2 * hidden


def _layers(spec: CacheSpec) -> list[dict[str, Any]]:
    return [
        {
            "kind": layer.kind,
            "count": count,
            "bytes_per_token": layer.bytes_per_token(spec.format),
            "window": layer.window,
            "kv_heads": layer.kv_heads,
            "head_dim": layer.head_dim,
            "state_bytes": spec.layer_state_bytes(layer),
        }
        for layer, count in spec.grouped()
    ]


def _if_heads(spec: CacheSpec, kv_heads: int | None, tokens: int, sequences: int) -> int | None:
    if kv_heads is None:
        return None
    try:
        return spec.with_kv_heads(kv_heads).used_bytes(tokens, sequences)
    except UnknownShape:
        return None


def context_tokens(config: Mapping[str, Any]) -> int | None:
    """The longest text the config names; None where it names none."""
    inner = text_config(config)
    value = next(filter(None, map(inner.get, ("max_position_embeddings", "n_positions"))), None)
    return value if is_count(value) else None
