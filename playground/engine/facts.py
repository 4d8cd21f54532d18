"""What is written down of a loaded model: facts for the record, stop tokens, the authors' settings.

Reads configs and parameters' sizes; knows neither files nor how the model was loaded.
"""

from dataclasses import replace
from typing import Any

import torch

from playground.core.decoding import STAGE_ORDER, Decoding, InvalidSetting, validated
from playground.core.kv import CacheSpec, UnknownShape, cache_spec
from playground.core.request import ModelFacts
from playground.engine import devices


def model_facts(
    name: str,
    revision: str | None,
    module: Any,
    tokenizer: Any,
    spec: CacheSpec | None,
    device: torch.device,
    dtype: str,
) -> ModelFacts:
    """The record of `module` on `device`; `spec` is its cache's shape where that is known."""
    config = module.config.get_text_config()
    return ModelFacts(
        name=name,
        revision=revision,
        device=str(device),
        dtype=dtype,
        vocabulary=config.vocab_size,
        context=_context(config),
        kv_bytes_per_token=spec.bytes_per_token if spec else None,
        kv_formula=_formula(spec) if spec else None,
        query_heads=spec.query_heads if spec else None,
        weights_bytes=_weights_bytes(module),
        memory_bytes=devices.memory(device).total_bytes,
        device_name=devices.device_name(device),
        chat_template=bool(getattr(tokenizer, "chat_template", None)),
    )


def kv_spec(config: Any, dtype: str) -> CacheSpec | None:
    """The shape of the model's KV cache, or None where the arithmetic does not cover it."""
    try:
        return cache_spec(config.to_dict(), dtype)
    except UnknownShape:
        return None


def stop_ids(module: Any, tokenizer: Any) -> frozenset[int]:
    """The tokens that end an answer: the generation config's, else the tokenizer's own."""
    eos = module.generation_config.eos_token_id if module.generation_config else None
    if eos is None:
        eos = tokenizer.eos_token_id
    if eos is None:
        return frozenset()
    return frozenset(eos if isinstance(eos, list) else [eos])


def suggested(module: Any) -> Decoding | None:
    """The sampling values that the model's authors stored, as a preset; None where there are none."""
    stored = module.generation_config.to_diff_dict() if module.generation_config else {}
    values = {name: stored[name] for name in STAGE_ORDER if stored.get(name) is not None}
    if not values and not stored.get("do_sample"):
        return None
    off = Decoding(strategy="sample" if stored.get("do_sample") else "greedy", temperature=1.0, top_p=1.0)
    try:
        return validated(replace(off, name="model", **values))
    except InvalidSetting:
        return None


def _context(config: Any) -> int | None:
    value = getattr(config, "max_position_embeddings", None)
    return value if isinstance(value, int) and value > 0 else None


def _formula(spec: CacheSpec) -> tuple[int, int, int, int] | None:
    """Layers, KV heads, head dimension, bytes per number; None where layers differ."""
    groups = {(layer.kv_heads, layer.head_dim) for layer in spec.layers}
    if len(groups) != 1:
        return None
    kv_heads, head_dim = groups.pop()
    return len(spec.layers), kv_heads, head_dim, spec.bytes_per_number


def _weights_bytes(module: Any) -> int:
    """Bytes of the parameters; a tied matrix is one parameter and counts once."""
    return sum(p.numel() * p.element_size() for p in module.parameters())
