"""The lean decode step: the module's own logits, its weights held once, refused wherever it would differ."""

from copy import deepcopy
from typing import Any

import pytest
import torch

from playground.engine.cache import forward, measure, new_cache
from playground.engine.lean import SHAPED_LIKE_LLAMA, lean_step
from tests.engine.families import FAMILIES, WINDOW, tiny


def _module(family: str) -> Any:
    return deepcopy(tiny(family).module)


@pytest.mark.parametrize("rows", [1, 3, 5])
@pytest.mark.parametrize("family", SHAPED_LIKE_LLAMA)
@torch.inference_mode()
def test_its_logits_and_its_cache_are_those_of_the_module(family: str, rows: int) -> None:
    module = _module(family)
    step = lean_step(module)
    assert step is not None
    tokens = torch.randint(3, 300, (rows, 3 * WINDOW), generator=torch.Generator().manual_seed(1))
    caches = new_cache(module), new_cache(module)
    for cache in caches:
        forward(module, tokens[:, :3], cache)
    for place in range(3, tokens.shape[1]):
        expected = forward(module, tokens[:, place : place + 1], caches[0])
        found = step(tokens[:, place : place + 1], caches[1])
        assert (expected - found).abs().max() < 1e-4 * expected.abs().max()
    assert measure(caches[0]).used_bytes == measure(caches[1]).used_bytes


@torch.inference_mode()
def test_a_bias_of_query_key_and_value_is_added() -> None:
    module = _module("qwen2")
    for layer in module.model.layers:
        torch.nn.init.normal_(layer.self_attn.k_proj.bias)
    assert lean_step(module) is not None


def test_no_weight_is_held_twice() -> None:
    module = _module("llama")
    before = {name: weight.clone() for name, weight in module.named_parameters()}
    step = lean_step(module)
    assert step is not None
    held = {
        weight.untyped_storage().data_ptr(): weight.untyped_storage().nbytes()
        for weight in module.parameters()
    }
    assert sum(held.values()) == sum(weight.nbytes for weight in module.parameters())
    assert all(torch.equal(weight, before[name]) for name, weight in module.named_parameters())
    storages = {
        matrix.weight.untyped_storage().data_ptr()
        for layer in step._layers
        for matrix in (layer.qkv, layer.gate_up)
    }
    assert storages <= set(held)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in SHAPED_LIKE_LLAMA])
def test_other_families_keep_their_own_forward(family: str) -> None:
    assert lean_step(_module(family)) is None


def test_a_model_of_the_name_with_another_arithmetic_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    module = _module("llama")
    module.model.norm.forward = lambda hidden: hidden
    assert lean_step(module) is None
    assert "is not used" in caplog.text


def test_a_model_with_an_adapter_in_it_keeps_its_own_forward() -> None:
    class Adapted(torch.nn.Linear):
        """A linear layer that does more than one."""

    module = _module("llama")
    projection = module.model.layers[0].self_attn.q_proj
    module.model.layers[0].self_attn.q_proj = Adapted(
        projection.in_features, projection.out_features, bias=False
    )
    assert lean_step(module) is None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_it_is_used_in_sixteen_bit_too(dtype: torch.dtype) -> None:
    assert lean_step(_module("llama").to(dtype)) is not None
