"""What is written down of a loaded model: facts for the record, stop tokens, the authors' settings.

Reads configs and parameters' sizes; knows neither files nor how the model was loaded.
"""

from dataclasses import replace
from typing import Any

import torch

from playground.core.decoding import Decoding, InvalidSetting, validated
from playground.core.kv import CacheSpec, UnknownShape, cache_spec
from playground.core.request import ModelFacts, Reason
from playground.core.stages import STAGE_ORDER
from playground.engine import devices
from playground.engine.placement import weights_by_place


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
    context = _context(config)
    return ModelFacts(
        name=name,
        revision=revision,
        device=str(device),
        dtype=dtype,
        vocabulary=config.vocab_size,
        context=context,
        kv_bytes_per_token=spec.bytes_per_token if spec else None,
        kv_formula=_formula(spec) if spec else None,
        query_heads=spec.query_heads if spec else None,
        weights_bytes=_weights_bytes(module),
        memory_bytes=devices.memory(device).total_bytes,
        device_name=devices.device_name(device),
        chat_template=bool(getattr(tokenizer, "chat_template", None)),
        kv_context_bytes=spec.used_bytes(context) if spec and context else None,
        kv_state_bytes=spec.state_bytes() if spec else None,
        kv_reasons=kv_reasons(config, spec) if spec else (),
        weights_places=weights_by_place(module),
    )


def kv_spec(config: Any, dtype: str) -> CacheSpec | None:
    """The shape of the model's KV cache, or None where the arithmetic does not cover it."""
    try:
        return cache_spec(config.to_dict(), dtype)
    except UnknownShape:
        return None


_WINDOW = Reason(
    "kv_window",
    "The transformers library keeps one position fewer than a window is long: the newest token is in the step itself.",
)
_REPEATED = Reason(
    "kv_repeated_heads",
    "This model's code stores each KV head once for every query head that shares it.",
)
_ELSEWHERE = Reason(
    "kv_state_elsewhere",
    "This model's code keeps its constant state in the model and not in the cache, where it was measured.",
)


def kv_reasons(config: Any, spec: CacheSpec) -> tuple[Reason, ...]:
    """Why the live cache of transformers (5.17 to 5.24) differs from `spec`, where it is known to."""
    windowed = any(layer.window is not None for layer in spec.layers)
    repeated = bool(getattr(config, "new_decoder_architecture", False))
    elsewhere = any(layer.state is not None and layer.state.kind == "recurrent" for layer in spec.layers)
    found = ((_WINDOW, windowed), (_REPEATED, repeated), (_ELSEWHERE, elsewhere))
    return tuple(reason for reason, holds in found if holds)


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
    """Layers that attend, KV heads, head dimension, bytes per number; None where these layers differ."""
    attending = [layer for layer in spec.layers if layer.kv_heads]
    groups = {(layer.kv_heads, layer.head_dim, layer.value_dim) for layer in attending}
    if len(groups) != 1:
        return None
    kv_heads, head_dim, value_dim = groups.pop()
    if value_dim not in (None, head_dim):
        return None
    return len(attending), kv_heads, head_dim, spec.bytes_per_number


def _weights_bytes(module: Any) -> int:
    """Bytes of the parameters; a tied matrix is one parameter and counts once."""
    return sum(p.numel() * p.element_size() for p in module.parameters())
