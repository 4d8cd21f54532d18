"""What a live cache holds of each kind, against the arithmetic on the config (cases 36, 37, 38)."""

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from playground.core.decoding import GREEDY
from playground.core.events import Prefilled
from playground.core.kv import CacheSpec, cache_spec
from playground.core.report import kv_cache
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.cache import Measured, forward, keep_rows, measure, measure_layers, new_cache
from playground.engine.decode import stream
from playground.engine.facts import kv_reasons, kv_spec, model_facts
from tests.engine import families
from tests.engine.conftest import loaded
from tests.engine.families import FAMILIES, WINDOW, WINDOWED, WITH_STATE, tiny

LENGTHS = (1, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW)
"""Below, at and past the window."""

_SMALL = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=4, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=256,
)  # fmt: skip
_EXPERTS = dict(num_experts=4, num_experts_per_tok=2, num_local_experts=4)
MORE: dict[str, dict[str, Any]] = {
    "falcon": dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4),
    "phi3": _SMALL | dict(sliding_window=WINDOW, pad_token_id=0),
    "qwen2": _SMALL | dict(use_sliding_window=True, sliding_window=WINDOW, max_window_layers=2),
    "mamba": dict(vocab_size=64, hidden_size=32, num_hidden_layers=2, state_size=8),
    "jamba": _SMALL
    | _EXPERTS
    | dict(attn_layer_period=2, attn_layer_offset=1, mamba_d_state=8, use_mamba_kernels=False, pad_token_id=0),
    "zamba2": _SMALL
    | dict(
        num_key_value_heads=4, mamba_d_state=8, n_mamba_heads=4, mamba_ngroups=2, chunk_size=8,
        layers_block_type=["mamba", "hybrid"] * 2, pad_token_id=0,
    ),
    "granitemoehybrid": _SMALL
    | dict(
        layer_types=["mamba", "attention"] * 2, mamba_n_heads=8, mamba_d_head=8, mamba_d_state=8,
        mamba_n_groups=2, mamba_chunk_size=8, shared_intermediate_size=16, num_local_experts=4,
        pad_token_id=0,
    ),
    "nemotron_h": {k: v for k, v in _SMALL.items() if k != "num_hidden_layers"}
    | dict(
        layers_block_type=["mamba", "moe", "attention", "mlp"], head_dim=8, mamba_num_heads=8,
        mamba_head_dim=8, ssm_state_size=8, n_groups=2, chunk_size=8, n_routed_experts=4,
        num_experts_per_tok=2, moe_intermediate_size=16, moe_shared_expert_intermediate_size=16,
    ),
    "olmo_hybrid": _SMALL
    | dict(
        num_key_value_heads=4, linear_num_key_heads=4, linear_num_value_heads=4, linear_key_head_dim=8,
        linear_value_head_dim=16, pad_token_id=0,
    ),
    "gemma3n_text": _SMALL
    | dict(
        sliding_window=WINDOW, head_dim=8, num_kv_shared_layers=2, intermediate_size=[48] * 4,
        layer_types=["sliding_attention", "full_attention"] * 2, vocab_size_per_layer_input=64,
        hidden_size_per_layer_input=8, activation_sparsity_pattern=[0.0] * 4,
    ),
    "deepseek_v2": _SMALL
    | dict(
        kv_lora_rank=12, q_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8,
        num_key_value_heads=4, n_routed_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
        n_shared_experts=1, first_k_dense_replace=1,
    ),
}  # fmt: skip


@cache
def module(name: str) -> Any:
    if name not in MORE:
        return families.module(name)
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **MORE[name])).eval()


def spec_of(model: Any) -> CacheSpec:
    spec = kv_spec(model.config, str(model.dtype).removeprefix("torch."))
    assert spec is not None
    return spec


def held(model: Any, tokens: int, rows: int = 1) -> Measured:
    """What the cache holds after `tokens` positions."""
    return measure(filled(model, tokens, rows))


def filled(model: Any, tokens: int, rows: int = 1) -> Any:
    """The cache after `tokens` positions: all but the last read at once, the last in a step of its own."""
    live = new_cache(model)
    with torch.inference_mode():
        if tokens > 1:
            forward(model, torch.arange(2, tokens + 1)[None] % 50, live)
        if rows > 1:
            keep_rows(live, [0] * rows)
        forward(model, torch.full((rows, 1), 3), live)
    return live


def one_less(spec: CacheSpec) -> CacheSpec:
    """The same with every window one position shorter."""
    layers = (replace(s, window=s.window - 1) if s.window else s for s in spec.layers)
    return replace(spec, layers=tuple(layers))


@pytest.mark.parametrize("name", sorted({*FAMILIES, *MORE}))
def test_a_live_cache_holds_what_the_arithmetic_says(name: str) -> None:
    """Cases 36, 37 and 38: equal to the byte, but for windows, of which transformers keeps one less."""
    model = module(name)
    spec = spec_of(model)
    windowed = {reason.key for reason in kv_reasons(model.config, spec)} == {"kv_window"}
    assert windowed == any(layer.window for layer in spec.layers)
    for tokens in LENGTHS:
        measured = held(model, tokens)
        assert measured.tokens == tokens
        assert measured.state_bytes == spec.state_bytes()
        assert measured.used_bytes == one_less(spec).used_bytes(tokens)
        differs = windowed and tokens >= WINDOW
        assert (measured.used_bytes != spec.used_bytes(tokens)) == differs


@pytest.mark.parametrize("name", sorted({*FAMILIES, *MORE}))
def test_each_layer_of_a_live_cache_holds_its_part(name: str) -> None:
    """Cases 36, 37 and 38, layer by layer, of one of two sequences."""
    spec, tokens = spec_of(module(name)), 3 * WINDOW
    live = filled(module(name), tokens, rows=2)
    read, whole = measure_layers(live, 2), measure(live)
    assert 2 * sum(layer.used_bytes for layer in read) == whole.used_bytes
    assert 2 * sum(layer.allocated_bytes for layer in read) == whole.allocated_bytes
    assert 2 * sum(layer.state_bytes for layer in read) == whole.state_bytes
    assert all(layer.kind == "none" for layer in spec.layers[len(read) :])
    for layer, one in zip(one_less(spec).layers, read, strict=False):
        kept = layer.bytes_per_token(spec.format) * min(tokens, layer.window or tokens)
        assert (one.used_bytes, one.state_bytes) == (kept, spec.layer_state_bytes(layer))


@pytest.mark.parametrize("name", WINDOWED)
def test_each_windowed_layer_keeps_one_position_less_than_its_window(name: str) -> None:
    spec, per_position = spec_of(module(name)), 0
    for layer in spec.layers:
        if layer.window:
            assert layer.window == WINDOW
            per_position += layer.numbers_per_token() * 4
    measured = held(module(name), 3 * WINDOW)
    assert measured.used_bytes == spec.used_bytes(3 * WINDOW) - per_position


@pytest.mark.parametrize("name", WITH_STATE)
def test_the_state_does_not_grow_and_goes_with_the_rows(name: str) -> None:
    """Case 38."""
    spec = spec_of(module(name))
    assert spec.state_bytes() > 0
    for tokens in (2, 40):
        measured = held(module(name), tokens, rows=3)
        assert measured.state_bytes == spec.state_bytes(3) == 3 * spec.state_bytes()
        assert measured.used_bytes == spec.used_bytes(tokens, 3)
        assert measured.held_bytes == (measured.allocated_bytes or 0) + spec.state_bytes(3)


@pytest.mark.parametrize("name", ["qwen3_next", "mamba2", "bamba", "falcon_h1", "jamba", "mamba", "zamba2"])
def test_in_16_bit_the_recurrent_state_stays_in_32(name: str) -> None:
    """The convolution's inputs take 2 bytes a number, the state that everything is folded into 4."""
    model = module(name)
    config = AutoConfig.for_model(name, **MORE.get(name, families.CONFIGS.get(name, {})))
    half = AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()
    spec, wide = spec_of(half), spec_of(model)
    states = [layer.state for layer in spec.layers if layer.state]
    assert spec.state_bytes() == wide.state_bytes() - 2 * sum(state.conv_numbers for state in states)
    measured = held(half, 20)
    assert (measured.used_bytes, measured.state_bytes) == (spec.used_bytes(20), spec.state_bytes())


def test_a_latent_is_what_the_live_cache_of_deepseek_holds() -> None:
    """Case 37: not the keys and values of every head, which the latent is expanded to at each step."""
    model = module("deepseek_v3")
    config, spec = model.config, spec_of(model)
    latent = config.kv_lora_rank + config.qk_rope_head_dim
    assert held(model, 20).used_bytes == config.num_hidden_layers * latent * 4 * 20
    expanded = config.num_attention_heads * (
        config.qk_nope_head_dim + config.qk_rope_head_dim + config.v_head_dim
    )
    mha = spec.with_kv_heads(config.num_attention_heads)
    assert mha.bytes_per_token == config.num_hidden_layers * expanded * 4
    assert kv_reasons(config, spec) == ()


def test_a_family_whose_code_repeats_the_kv_heads() -> None:
    shape = MORE["falcon"] | dict(new_decoder_architecture=True, num_kv_heads=2)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("falcon", **shape)).eval()
    spec = spec_of(model)
    assert [reason.key for reason in kv_reasons(model.config, spec)] == ["kv_repeated_heads"]
    assert spec.layers[0].kv_heads == 2
    assert held(model, 20).used_bytes == spec.with_kv_heads(4).used_bytes(20) == 2 * spec.used_bytes(20)


def test_a_family_whose_state_is_not_in_the_cache() -> None:
    shape = _SMALL | dict(lru_width=32, head_dim=8, attention_window_size=WINDOW, num_hidden_layers=3)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("recurrent_gemma", **shape)).eval()
    spec = spec_of(model)
    assert [layer.kind for layer in spec.layers] == ["recurrent", "recurrent", "sliding"]
    assert [reason.key for reason in kv_reasons(model.config, spec)] == ["kv_window", "kv_state_elsewhere"]
    measured = held(model, 3 * WINDOW)
    assert measured.used_bytes == one_less(spec).used_bytes(3 * WINDOW)
    assert (measured.state_bytes, spec.state_bytes()) == (0, 2 * (3 * 32 * 4 + 32 * 4))


class Unknown:
    """A cache of a class that nobody here has heard of."""

    def get_seq_length(self) -> int:
        return 7


def test_an_unknown_cache_is_not_measurable() -> None:
    """Case 30."""
    assert measure(Unknown()) == Measured(7, None, None, None)
    assert measure(Unknown()).held_bytes is None
    assert measure(None) == Measured(0, 0, 0, 0)


@pytest.mark.parametrize("name", ["mistral", "qwen3_next", "mamba2", "deepseek_v3"])
def test_a_run_says_what_differs_and_why(name: str) -> None:
    model = tiny(name)
    facts = model_facts("tiny", None, model.module, model.tokenizer, model.spec, model.device, "float32")
    model.facts = facts
    run = fold(stream(model, Request("hello world", (replace(GREEDY, max_new_tokens=20),), chat=False)))
    lane, answer = run.lanes[0], kv_cache(run, run.lanes[0])
    assert isinstance(run.prefilled, Prefilled)
    assert run.prefilled.kv_state_bytes == facts.kv_state_bytes == answer["state_bytes"]
    assert {step.kv_state_bytes for step in lane.steps} == {answer["predicted_state_bytes"]}
    assert answer["tokens"] == len(run.prompt_ids) + len(lane.steps) - 1 > WINDOW
    assert (
        bool(answer["reasons"]) == (name == "mistral") == (answer["used_bytes"] != answer["predicted_bytes"])
    )
    assert answer["state_bytes"] == spec_of(model.module).state_bytes()


def test_formula_and_full_context_of_a_hybrid() -> None:
    model = tiny("qwen3_next")
    facts = model_facts("tiny", None, model.module, model.tokenizer, model.spec, model.device, "float32")
    assert facts.kv_formula == (1, 2, 16, 4)
    assert facts.kv_bytes_per_token == 2 * 2 * 16 * 4
    assert facts.kv_context_bytes == facts.kv_bytes_per_token * 2048
    windowed = tiny("mistral")
    spec = windowed.spec
    assert spec is not None
    facts = model_facts("tiny", None, windowed.module, windowed.tokenizer, spec, windowed.device, "float32")
    assert facts.kv_context_bytes == spec.bytes_per_token * WINDOW


def test_a_config_that_cannot_be_told_gives_no_prediction() -> None:
    config = AutoConfig.for_model("rwkv")
    assert kv_spec(config, "float32") is None
    assert loaded(module("llama"), families.tokenizer()).spec == cache_spec(
        module("llama").config.to_dict(), "float32"
    )
