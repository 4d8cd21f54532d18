"""What a config costs in memory, as the JSON object of `first-token kv` and of the page's endpoint.

Arithmetic only; nothing here was measured. Knows configs as dictionaries.
"""

from collections.abc import Mapping
from typing import Any

from playground.core.decoding import InvalidSetting
from playground.core.kv import CacheSpec, cache_spec, is_count, text_config

_LLAMA_LIKE = {"llama", "mistral", "qwen2", "qwen3"}
TOKENS_LIMIT = 10**9
SEQUENCES_LIMIT = 10**6


def kv_report(
    config: Mapping[str, Any], tokens: int = 4096, sequences: int = 1, dtype: str | None = None
) -> dict[str, Any]:
    """The KV cache of `sequences` sequences at `tokens` tokens each.

    `bytes_per_token` is of one sequence; a layer's is of one layer, of which there are `count`.
    `if_mha_bytes` and `if_mqa_bytes` are `used_bytes` had every query head, or just one head,
    its own keys and values. `weights_bytes` is None where the family is not known here. Raises
    `UnknownShape`, and `InvalidSetting` for counts out of range.
    """
    _require_count("tokens", tokens, TOKENS_LIMIT)
    _require_count("sequences", sequences, SEQUENCES_LIMIT)
    spec = cache_spec(config, dtype)
    return {
        "bytes_per_token": spec.bytes_per_token,
        "used_bytes": spec.used_bytes(tokens, sequences),
        "allocated_bytes": spec.allocated_bytes(tokens, sequences),
        "layers": _layers(spec),
        "if_mha_bytes": spec.with_kv_heads(spec.query_heads).used_bytes(tokens, sequences),
        "if_mqa_bytes": spec.with_kv_heads(1).used_bytes(tokens, sequences),
        "weights_bytes": weights_bytes(config, spec),
        "tokens": tokens,
        "sequences": sequences,
        "dtype": spec.dtype,
        "query_heads": spec.query_heads,
        "context": _context(config),
    }


def weights_bytes(config: Mapping[str, Any], spec: CacheSpec) -> int | None:
    """Bytes of the weights of a Llama-like model in the cache's dtype; None for other families.

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
    return (layers + matrices * vocabulary * hidden + hidden) * spec.bytes_per_number


def _layer_weights(config: Mapping[str, Any], spec: CacheSpec, index: int, hidden: int, inner: int) -> int:
    layer = spec.layers[index]
    queries, keys = spec.query_heads * layer.head_dim, layer.kv_heads * layer.head_dim
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
            "bytes_per_token": layer.numbers_per_token() * spec.bytes_per_number,
            "window": layer.window,
            "kv_heads": layer.kv_heads,
            "head_dim": layer.head_dim,
        }
        for layer, count in spec.grouped()
    ]


def _context(config: Mapping[str, Any]) -> int | None:
    value = text_config(config).get("max_position_embeddings")
    return value if is_count(value) else None


def _require_count(name: str, value: object, limit: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limit:
        raise InvalidSetting(f"{name} must be a whole number from 1 to {limit:,}, not {repr(value)[:60]}.")
