"""The shape that a model's costs hang on, and the parameters of any config, counted on the module itself.

A config's module is built on torch's meta device, where a matrix is its size and nothing else: a model of
a trillion parameters takes tens of milliseconds and no memory. No code but transformers' own runs, and
nothing is fetched. Knows no clock.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from torch import nn

from playground.core.config import Config, UnknownShape, text_config
from playground.core.cost import Attention, Shape
from playground.core.deadline import within
from playground.core.kinds import layer_kinds
from playground.core.kv import CacheSpec, LayerSpec, cache_spec
from playground.engine import int8
from playground.engine.model import LoadedModel

BUILD_SECONDS_LIMIT = 10.0
LAYERS_LIMIT = 1_024
MODULES_LIMIT = 2**16
"""Layers times experts: some families build a module for each."""

_COUNT_LIMIT, _SIZE_LIMIT = 4_096, 2**31
_TEXT_LIMIT_BYTES = 2**20
_DEPTH_LIMIT = 8

_IS_LAYERS = re.compile(r"layers?$|^n_layer|depth|num_.*blocks")
_IS_COUNT = re.compile(r"^(num|n)_|layer|expert|head|block|group|codebook")
_IS_SIZE = re.compile(r"_(size|dim|ids?|width|rank|embd|inner|positions|ctx|window|interval|length)$")
_IS_EXPERTS = re.compile(r"^(num_experts|num_local_experts|n_routed_experts|moe_num_experts)$")
_WIDTHS = ("hidden_size", "n_embd", "d_model", "n_embed", "dim")
_DEPTHS = (
    "num_hidden_layers", "n_layer", "num_layers", "n_layers", "layer_types", "layers_block_type",
    "hybrid_override_pattern",
)  # fmt: skip
_LEFT_OUT = {
    "auto_map", "quantization_config", "attn_implementation", "experts_implementation", "dtype",
    "torch_dtype", "name_or_path", "use_kernels", "architectures", "transformers_version", "model_type",
}  # fmt: skip
"""What does not change the number of parameters, or names code, kernels or files."""


def cost_shape(model: LoadedModel) -> Shape | None:
    """The shape of a loaded model, by its real parameters; None where the arithmetic does not cover it."""
    if model.spec is None:
        return None
    if model.facts.weights == int8.NAME:  # its matrices are no parameters any more
        return _shape(_module(model.module.config.to_dict()), model.spec, int8.bytes_per_weight(model.module))
    return _shape(model.module, model.spec)


def config_shape(config: Config, dtype: str | None = None) -> Shape | None:
    """As `cost_shape`, of a config alone, weights and cache in `dtype` (else the config's, else 16-bit).

    Raises `UnknownShape`.
    """
    spec = cache_spec(config, dtype)
    return _shape(_module(config), spec, spec.bytes_per_number)


def count_parameters(config: Config) -> int:
    """The parameters of the language model that transformers builds for `config`; a tied matrix counts once.

    Raises `UnknownShape` for a config that it cannot build, or that is too large to try.
    """
    module = _module(config)
    return sum(parameter.numel() for _, _, parameter in _parameters(module))


def _module(config: Config) -> Any:
    """The module of `config` on the meta device, within a time; kept for the latest few configs."""
    kind, values = _wanted(config)
    try:
        text = json.dumps(values, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise UnknownShape("This config holds values that are not JSON; nothing was computed.") from None
    if len(text) > _TEXT_LIMIT_BYTES:
        raise UnknownShape("This config is longer than 1 MiB; nothing was computed.")
    _require_bounded(values)
    try:
        return within(BUILD_SECONDS_LIMIT, lambda: _built(kind, text))
    except TimeoutError:
        raise UnknownShape(
            f"The model of this config was not built within {BUILD_SECONDS_LIMIT:g} s; nothing was computed."
        ) from None
    except Exception as error:  # transformers raises whatever its parts raise
        lines = str(error).strip().splitlines() or ["no reason given"]
        reason = f"{type(error).__name__}: {lines[0][:160].rstrip('.')}"
        raise UnknownShape(
            f"transformers cannot build a model from this config ({reason}); nothing was computed."
        ) from error


@lru_cache(maxsize=32)
def _built(kind: str, text: str) -> Any:
    """Not by `from_config`, which switches settings of the whole process while it builds."""
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    config = AutoConfig.for_model(kind, **json.loads(text))
    config._attn_implementation = "eager"
    with torch.device("meta"):
        return MODEL_FOR_CAUSAL_LM_MAPPING[type(config)](config)


def _wanted(config: Config) -> tuple[str, dict[str, Any]]:
    """The model type and the values that tell its shape, of the language model where there is one apart."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    for part in (text_config(config), config):
        kind = part.get("model_type")
        if isinstance(kind, str) and kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
            _require_sizes(part)
            return kind, _stripped(part)
    named = repr(config.get("model_type"))[:60]
    raise UnknownShape(f"transformers knows no language model of the type {named}; nothing was computed.")


def _require_sizes(config: Config) -> None:
    """transformers fills in what a config leaves out; a model of defaults would be nobody's."""
    for names in (_WIDTHS, _DEPTHS):
        if all(config.get(name) is None for name in names):
            raise UnknownShape(f"This config has no {names[0]}; nothing was computed.")


def _stripped(value: Any, depth: int = 0) -> Any:
    if depth > _DEPTH_LIMIT:
        raise UnknownShape(f"This config is nested deeper than {_DEPTH_LIMIT} levels; nothing was computed.")
    if isinstance(value, list | tuple):
        return [_stripped(item, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _stripped(item, depth + 1) for name, item in value.items()
        if isinstance(name, str) and not name.startswith("_") and (depth or name not in _LEFT_OUT)
        and name not in ("auto_map", "attn_implementation", "experts_implementation")
    }  # fmt: skip


def _require_bounded(values: dict[str, Any]) -> None:
    """Refuse what would build a great many modules, or sizes that are none."""
    layers = experts = 1.0
    for name, number in _numbers(values):
        limit = LAYERS_LIMIT if _IS_LAYERS.search(name) else _COUNT_LIMIT
        if _IS_SIZE.search(name) or not (_IS_COUNT.search(name) or _IS_LAYERS.search(name)):
            limit = _SIZE_LIMIT
        if not -limit <= number <= limit:
            raise UnknownShape(f"{name[:60]} must be at most {limit:,} in this config; nothing was computed.")
        if limit == LAYERS_LIMIT:
            layers = max(layers, number)
        if _IS_EXPERTS.search(name):
            experts = max(experts, number)
    if layers * experts > MODULES_LIMIT:
        raise UnknownShape(f"This config has more than {MODULES_LIMIT:,} experts; nothing was computed.")


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def _shape(module: Any, spec: CacheSpec, bytes_per_parameter: float | None = None) -> Shape | None:
    head = _head(module)
    body = heads = routed = held_bytes = 0
    for path, part, parameter in _parameters(module):
        if parameter is head:
            heads += parameter.numel()
        elif isinstance(part, nn.Embedding) or parameter.dim() < 2:
            continue  # a row is looked up; vectors are left out
        elif _is_routed(path):
            routed += parameter.numel()
        else:
            body += parameter.numel()
        held_bytes += parameter.nbytes
    share = _expert_share(module.config) if routed else 1.0
    attention = _attention(module.config, spec)
    if share is None or attention is None:
        return None
    acting = round(routed * share)
    each = bytes_per_parameter or held_bytes / (body + heads + routed)
    return Shape(body + acting, heads, each, attention, spec, routed - acting, share)


def _parameters(module: Any) -> Iterator[tuple[str, Any, Any]]:
    """Path, owner and parameter, each parameter once; the head last, so that a tied one is seen as such."""
    head, tied = _head(module), _is_tied(module)
    seen = {id(head)}
    for path, part in module.named_modules():
        for name, parameter in part.named_parameters(recurse=False):
            embedding = part is module.get_input_embeddings() and name == "weight"
            if id(parameter) not in seen and not (tied and embedding):
                seen.add(id(parameter))
                yield f"{path}.{name}", part, parameter
    if head is not None:
        yield "head", None, head


def _head(module: Any) -> Any:
    head = module.get_output_embeddings()
    return None if head is None else head.weight


def _is_tied(module: Any) -> bool:
    """By the config: another thread that loads a model suspends the tying for everyone."""
    head, embedding = _head(module), module.get_input_embeddings().weight
    by_config = bool(getattr(module.config, "tie_word_embeddings", False)) and head is not None
    return head is embedding or (by_config and head.shape == embedding.shape)


def _is_routed(path: str) -> bool:
    parts = path.split(".")
    return "experts" in parts and not parts[-1].endswith("bias")


_CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "experts_per_token")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def _expert_share(config: Any) -> float | None:
    """Experts that act for one token over all routed ones; None where the config does not tell."""
    chosen, experts = _first(config, _CHOSEN), _first(config, _EXPERTS)
    return chosen / experts if chosen and experts and chosen <= experts else None


def _first(config: Any, names: tuple[str, ...]) -> int | None:
    found = (getattr(config, name, None) for name in names)
    return next((value for value in found if isinstance(value, int) and value > 0), None)


def _attention(config: Any, spec: CacheSpec) -> tuple[Attention, ...] | None:
    """The layers that attend; one that shares another's keys and values attends like the last of its kind."""
    values = config.get_text_config().to_dict()
    latest: dict[str, LayerSpec] = {}
    found: list[Attention] = []
    for kind, layer in zip(layer_kinds(values), spec.layers, strict=True):
        attends = kind.partition("+")[0]
        if layer.kv_heads:
            latest[attends] = layer
        if attends not in ("none", "state"):
            if attends not in latest or not spec.query_heads:
                return None
            found.append(_attending(latest[attends], spec.query_heads, attends == "chunked", values))
    return tuple(found)


def _attending(layer: LayerSpec, heads: int, chunked: bool, values: Config) -> Attention:
    if layer.kind == "latent" and layer.expanded is not None:
        key, value = layer.expanded
        rank, rotated = values["kv_lora_rank"], values["qk_rope_head_dim"]
        made_anew = 2 * rank * heads * (key - rotated + value)
        return Attention(2 * heads * (key + value), layer.window, chunked, made_anew)
    value = layer.head_dim if layer.value_dim is None else layer.value_dim
    return Attention(2 * heads * (layer.head_dim + value), layer.window, chunked)
