"""Shapes and parameter counts: known models to the number, every family, and configs that mean harm."""

import math
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from playground import catalog
from playground.core.config import UnknownShape
from playground.core.cost import Attention, crossover_tokens
from playground.engine import costing
from playground.engine.costing import config_shape, cost_shape, count_parameters
from playground.engine.curves import reference_crossover_tokens
from playground.engine.model import LoadedModel
from tests.engine.conftest import loaded, tiny_module
from tests.engine.families import FAMILIES, tiny

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": False,
}  # fmt: skip


def known(name: str) -> dict[str, Any]:
    found = catalog.config(name)
    assert found is not None
    return found.shape


def test_llama_8b_has_its_published_parameters() -> None:
    assert count_parameters(LLAMA) == 8_030_261_248
    assert 2 * count_parameters(LLAMA) == 16_060_522_496


def test_llama_8b_by_hand() -> None:
    """Matrices of one layer: queries and output, keys and values, three of the feed-forward."""
    layer = 2 * 4096 * 4096 + 2 * 4096 * 8 * 128 + 3 * 4096 * 14336
    shape = config_shape(LLAMA, "bfloat16")
    assert shape is not None
    assert (shape.body_parameters, shape.head_parameters) == (32 * layer, 128256 * 4096)
    assert shape.attention == (Attention(32 * (2 * 128 + 2 * 128)),) * 32
    assert shape.bytes_per_parameter == 2
    assert crossover_tokens(shape) == reference_crossover_tokens() == 53_248


_PUBLISHED_WITH_BUFFERS = {
    "llama-2-7b": 32 * 64, "llama-2-70b": 80 * 64,  # rotary frequencies, stored with the weights then
    "deepseek-v3": 58 * 256,  # the correction of each expert's score, a buffer in transformers
}  # fmt: skip


@pytest.mark.parametrize("known_config", catalog.configs(), ids=lambda found: found.name)
def test_catalog_models_have_their_published_parameters(known_config: catalog.KnownConfig) -> None:
    counted = count_parameters(known_config.shape)
    if known_config.parameters is not None:
        assert counted == known_config.parameters - _PUBLISHED_WITH_BUFFERS.get(known_config.name, 0)
    shape = config_shape(known_config.shape)
    assert shape is not None
    assert 0 < shape.body_parameters + shape.head_parameters + shape.idle_parameters <= counted


def test_counting_takes_no_memory_and_runs_nothing() -> None:
    module = costing._module(known("deepseek-v3"))
    assert {p.device.type for p in module.parameters()} == {"meta"}
    assert count_parameters(known("deepseek-v3")) > 600e9


def test_experts_that_act() -> None:
    """DeepSeek-V3: about 37 billion of 671 act for a token, 8 of 256 experts in each of 58 layers."""
    shape = config_shape(known("deepseek-v3"))
    assert shape is not None
    expert = 3 * 7168 * 2048
    assert shape.idle_parameters == 58 * 248 * expert
    assert shape.expert_share == 8 / 256
    assert shape.body_parameters + shape.head_parameters == pytest.approx(36.6e9, rel=0.01)
    heads, key, value, rank = 128, 128 + 64, 128, 512
    assert shape.attention[0] == Attention(
        2 * heads * (key + value), flops_per_cached=2 * rank * heads * (128 + value)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_shape_of_every_family(family: str) -> None:
    model = tiny(family)
    shape = cost_shape(model)
    assert shape is not None and model.spec is not None
    matrices = sum(p.numel() for p in model.module.parameters() if p.dim() > 1)
    embedding = model.module.get_input_embeddings().weight.numel()
    counted = shape.body_parameters + shape.head_parameters + shape.idle_parameters
    assert counted <= matrices - embedding
    assert counted >= 0.95 * (matrices - embedding) or family == "gpt2" or family == "gpt_bigcode"
    assert len(shape.attention) == sum(1 for layer in model.spec.layers if layer.kv_heads)
    assert shape.bytes_per_parameter == 4


@pytest.mark.parametrize("family", ["llama", "qwen3", "gpt2", "mistral", "gemma3_text"])
def test_operations_are_those_that_torch_counts(family: str) -> None:
    """Against torch's own counter: matrices exactly, attention as it is computed without a mask's savings."""
    from torch.utils.flop_counter import FlopCounterMode

    model, ids = tiny(family), torch.tensor([[5] * 12])
    shape = cost_shape(model)
    assert shape is not None
    model.module.set_attn_implementation("eager")
    try:
        with FlopCounterMode(display=False) as counter, torch.inference_mode():
            model.module(input_ids=ids, use_cache=False, logits_to_keep=1)
    finally:
        model.module.set_attn_implementation("sdpa")
    square = sum(layer.flops_per_pair * 12 * 12 for layer in shape.attention)
    rotary = sum(n for name, n in counter.get_flop_counts()["Global"].items() if "bmm" in str(name)) - square
    expected = 2 * (shape.body_parameters * 12 + shape.head_parameters) + square
    assert 0 <= rotary < 0.01 * expected  # the table of angles is a product too
    assert counter.get_total_flops() == expected + rotary


def test_a_tied_head_is_read_and_an_embedding_is_not() -> None:
    apart = cost_shape(loaded(tiny_module(400), tiny("llama").tokenizer))
    tied = cost_shape(loaded(tiny_module(400, tie_word_embeddings=True), tiny("llama").tokenizer))
    assert apart is not None and tied is not None
    assert apart.head_parameters == tied.head_parameters == 400 * 64
    assert apart.body_parameters == tied.body_parameters
    shapes = {"vocab_size": 400, "tie_word_embeddings": True}
    assert count_parameters(LLAMA | {"vocab_size": 400}) - count_parameters(LLAMA | shapes) == 400 * 4096


def test_bytes_are_those_of_the_real_dtype(make_model: Callable[..., LoadedModel]) -> None:
    half = loaded(make_model().module.to(torch.bfloat16), make_model().tokenizer)
    shape = cost_shape(half)
    assert shape is not None and shape.bytes_per_parameter == 2
    assert shape.cache.bytes_per_number == 2


def test_the_lean_step_changes_no_count(make_model: Callable[..., LoadedModel]) -> None:
    from playground.engine.lean import lean_step

    model = make_model()
    before = cost_shape(model)
    lean_step(model.module)
    assert cost_shape(model) == before


HOSTILE: dict[str, dict[str, Any]] = {
    "no type": {"hidden_size": 64},
    "type is a list": {"model_type": ["llama"]},
    "unknown type": {"model_type": "evil", "auto_map": {"AutoModelForCausalLM": "evil.Model"}},
    "an encoder with a decoder": LLAMA | {"model_type": "t5"},
    "nothing but a type": {"model_type": "llama"},
    "no layers": {"model_type": "llama", "hidden_size": 64},
    "zero heads": LLAMA | {"num_attention_heads": 0},
    "a string for a size": LLAMA | {"hidden_size": "large"},
    "a negative size": LLAMA | {"hidden_size": -64},
    "negative layers": LLAMA | {"num_hidden_layers": -(10**12)},
    "a billion layers": LLAMA | {"num_hidden_layers": 10**9},
    "a size beyond numbers": LLAMA | {"hidden_size": 10**400},
    "not a number": LLAMA | {"hidden_size": math.nan},
    "too many experts": {
        "model_type": "mixtral", "num_local_experts": 4096, "num_hidden_layers": 1024, "hidden_size": 64
    },
    "a list that is too short": known("gemma-3-1b") | {"layer_types": ["full_attention"]},
    "deeply nested": LLAMA | {"rope_scaling": eval("[" * 40 + "]" * 40)},
    "a megabyte": LLAMA | {"comment": "x" * 2**21},
    "not JSON": LLAMA | {"rope_scaling": {"a": object()}},
    "a size that overflows": LLAMA | {"vocab_size": 2**31, "hidden_size": 2**31, "head_dim": 2**31},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_config_gets_one_sentence(name: str) -> None:
    with pytest.raises(UnknownShape) as refused:
        count_parameters(HOSTILE[name])
    message = str(refused.value)
    assert message.endswith("nothing was computed.") and len(message) < 400 and "\n" not in message


def test_no_code_of_a_config_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers.dynamic_module_utils as remote

    monkeypatch.setattr(remote, "get_class_from_dynamic_module", lambda *_, **__: pytest.fail("remote code"))
    harm = {
        "auto_map": {"AutoConfig": "evil.C", "AutoModelForCausalLM": "evil.M"},
        "_attn_implementation": "evil/kernels", "attn_implementation": "evil/kernels",
        "quantization_config": {"quant_method": "evil"}, "torch_dtype": "load", "_name_or_path": "/etc",
    }  # fmt: skip
    assert count_parameters(LLAMA | harm) == 8_030_261_248


def test_a_build_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costing, "BUILD_SECONDS_LIMIT", 0.05)
    monkeypatch.setattr(costing, "_built", lambda *_: time.sleep(0.5))
    with pytest.raises(UnknownShape, match=r"not built within 0\.05 s; nothing was computed"):
        count_parameters(LLAMA)


def test_a_model_without_arithmetic_has_no_shape(make_model: Callable[..., LoadedModel]) -> None:
    model = make_model()
    model.spec = None
    assert cost_shape(model) is None
