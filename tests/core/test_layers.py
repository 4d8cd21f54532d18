"""What each layer keeps, of published configs, with values computed by hand (cases 36 to 38)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.core.kv import CacheSpec, UnknownShape, cache_spec
from playground.core.sizing import kv_report

DEEPSEEK_V3 = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "num_attention_heads": 128,
    "num_key_value_heads": 128, "hidden_size": 7168, "kv_lora_rank": 512, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "q_lora_rank": 1536, "torch_dtype": "bfloat16",
}  # fmt: skip
QWEN3_NEXT_80B = {
    "model_type": "qwen3_next", "num_hidden_layers": 48, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "hidden_size": 2048, "full_attention_interval": 4,
    "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "torch_dtype": "bfloat16",
}  # fmt: skip
MAMBA_2_7B = {
    "model_type": "mamba2", "num_hidden_layers": 64, "num_heads": 128, "head_dim": 64, "state_size": 128,
    "n_groups": 8, "conv_kernel": 4, "expand": 2, "hidden_size": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
JAMBA = {
    "model_type": "jamba", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "hidden_size": 4096, "intermediate_size": 14336, "attn_layer_period": 8, "attn_layer_offset": 4,
    "mamba_d_conv": 4, "mamba_d_state": 16, "mamba_dt_rank": 256, "mamba_expand": 2,
    "torch_dtype": "bfloat16",
}  # fmt: skip
LLAMA_4_SCOUT: dict[str, Any] = {
    "text_config": {
        "model_type": "llama4_text", "num_hidden_layers": 48, "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 5120, "attention_chunk_size": 8192,
        "no_rope_layers": [],
    },
    "torch_dtype": "bfloat16",
}  # fmt: skip
BAMBA = {
    "model_type": "bamba", "num_hidden_layers": 4, "num_attention_heads": 32, "num_key_value_heads": 8,
    "hidden_size": 4096, "attn_layer_indices": [1], "mamba_n_heads": 128, "mamba_d_head": 64,
    "mamba_n_groups": 1, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2,
}  # fmt: skip


def kinds(config: dict[str, Any]) -> list[str]:
    return [layer.kind for layer in cache_spec(config).layers]


def test_deepseek_v3_keeps_one_latent_for_all_heads():
    """Case 37: 61 x (512 + 64) numbers of two bytes."""
    spec = cache_spec(DEEPSEEK_V3)
    assert set(kinds(DEEPSEEK_V3)) == {"latent"}
    assert spec.bytes_per_token == 61 * (512 + 64) * 2 == 70_272
    assert spec.used_bytes(4096, 2) == spec.allocated_bytes(4096, 2) == 70_272 * 8192
    assert spec.with_kv_heads(128).bytes_per_token == 61 * 128 * (128 + 64 + 128) * 2
    assert spec.with_kv_heads(1).bytes_per_token == 61 * (128 + 64 + 128) * 2
    assert spec.state_bytes() == 0


def test_a_latent_that_does_not_tell_what_it_expands_to():
    config = {name: DEEPSEEK_V3[name] for name in DEEPSEEK_V3.keys() - {"v_head_dim", "qk_nope_head_dim"}}
    report = kv_report(config, 1)
    assert report["used_bytes"] == 70_272
    assert (report["if_mha_bytes"], report["if_mqa_bytes"]) == (None, None)


def test_qwen3_next_keeps_a_state_in_three_layers_of_four():
    """Case 38: the state is counted apart, its recurrent part in 32 bits."""
    spec = cache_spec(QWEN3_NEXT_80B)
    assert kinds(QWEN3_NEXT_80B) == ["linear", "linear", "linear", "full"] * 12
    assert spec.bytes_per_token == 12 * 2 * 2 * 256 * 2 == 24_576
    conv, recurrent = (2 * 16 * 128 + 32 * 128) * 4, 32 * 128 * 128
    assert spec.state_bytes() == 36 * (conv * 2 + recurrent * 4) == 77_856_768
    assert spec.state_bytes(3) == 3 * 77_856_768
    assert cache_spec(QWEN3_NEXT_80B, "float32").state_bytes() == 36 * (conv + recurrent) * 4
    report = kv_report(QWEN3_NEXT_80B, 1000, 2)
    assert (report["used_bytes"], report["state_bytes"]) == (24_576 * 2000, 2 * 77_856_768)
    assert report["layers"][0] == {
        "kind": "linear", "count": 3, "bytes_per_token": 0, "window": None, "kv_heads": 0, "head_dim": 0,
        "state_bytes": conv * 2 + recurrent * 4,
    }  # fmt: skip
    assert report["if_mha_bytes"] == 8 * report["used_bytes"]


def test_mamba_2_does_not_grow_at_all():
    """Case 38."""
    spec = cache_spec(MAMBA_2_7B)
    assert [spec.used_bytes(tokens) for tokens in (1, 1000)] == [0, 0]
    assert spec.state_bytes() == 64 * ((8192 + 2 * 8 * 128) * 4 * 2 + 8192 * 128 * 4) == 273_678_336
    report = kv_report(MAMBA_2_7B)
    assert (report["if_mha_bytes"], report["if_mqa_bytes"], report["query_heads"]) == (None, None, None)


def test_jamba_attends_in_one_layer_of_eight():
    """Case 38."""
    spec = cache_spec(JAMBA)
    assert kinds(JAMBA) == (["state-space"] * 4 + ["full"] + ["state-space"] * 3) * 4
    assert spec.bytes_per_token == 4 * 2 * 8 * 128 * 2
    assert spec.state_bytes() == 28 * (8192 * 4 * 2 + 8192 * 16 * 4) == 16_515_072


@pytest.mark.parametrize(("tokens", "chunked"), [(128, 128), (8192, 8192), (32_000, 8192)])
def test_llama_4_attends_in_chunks_in_three_layers_of_four(tokens: int, chunked: int):
    """Case 36: a chunk stops growing as a window does."""
    spec = cache_spec(LLAMA_4_SCOUT)
    assert kinds(LLAMA_4_SCOUT) == ["chunked", "chunked", "chunked", "full"] * 12
    assert spec.used_bytes(tokens) == 2 * 8 * 128 * 2 * (36 * chunked + 12 * tokens)
    assert spec.allocated_bytes(tokens) == 2 * 8 * 128 * 2 * 48 * tokens


def test_which_layers_keep_a_state_is_told_in_many_ways():
    state = "state-space"
    assert kinds(BAMBA) == [state, "full", state, state]
    nemotron = BAMBA | {"model_type": "nemotron_h", "hybrid_override_pattern": "M-M*-E"}
    assert kinds(nemotron) == [state, "none", state, "full", "none", "none"]
    assert kinds(BAMBA | {"layers_block_type": ["mamba", "hybrid"] * 2}) == [state, f"full + {state}"] * 2
    assert kinds(BAMBA | {"model_type": "falcon_h1"}) == [f"full + {state}"] * 4
    assert kinds(BAMBA | {"layer_types": ["mamba", "attention"] * 2}) == [state, "full"] * 2
    ahead = {"layer_types": [*["mamba", "attention"] * 2, "attention"], "num_nextn_predict_layers": 1}
    assert kinds(BAMBA | ahead) == [state, "full"] * 2, "a layer that guesses ahead keeps nothing of a run"
    lfm2 = {"num_hidden_layers": 3, "num_attention_heads": 4, "hidden_size": 64, "conv_L_cache": 3}
    assert kinds(lfm2 | {"full_attn_idxs": [2]}) == ["convolution", "convolution", "full"]
    assert cache_spec(lfm2 | {"full_attn_idxs": [2]}).state_bytes() == 2 * 64 * 3 * 2
    kimi = {name: value for name, value in DEEPSEEK_V3.items() if name != "model_type"} | {
        "num_hidden_layers": 4, "linear_attn_config": {
            "full_attn_layers": [4], "kda_layers": [1, 2, 3], "num_heads": 32, "head_dim": 128,
            "short_conv_kernel_size": 4,
        },
    }  # fmt: skip
    assert kinds(kimi) == ["linear", "linear", "linear", "latent"]
    assert cache_spec(kimi).state_bytes() == 3 * (3 * 32 * 128 * 4 * 2 + 32 * 128 * 128 * 4)
    gemma = {"attention_window_size": 2048, "block_types": ["recurrent", "recurrent", "attention"]}
    recurrent = lfm2 | gemma | {"conv_L_cache": None, "lru_width": 64, "conv1d_width": 4}
    del recurrent["conv_L_cache"]
    assert kinds(recurrent) == ["recurrent", "recurrent", "sliding"]
    assert cache_spec(recurrent).state_bytes() == 2 * (64 * 3 * 2 + 64 * 4)


def test_mamba_s_inner_width():
    mamba = {"model_type": "mamba", "hidden_size": 768, "state_size": 16, "conv_kernel": 4, "expand": 2}
    layers = mamba | {"num_hidden_layers": 1}
    assert cache_spec(layers).state_bytes() == 1536 * 4 * 2 + 1536 * 16 * 4
    wider = layers | {"model_type": "falcon_mamba", "expand": 16, "intermediate_size": 2048}
    assert cache_spec(wider).state_bytes() == 2048 * 4 * 2 + 2048 * 16 * 4
    auto = BAMBA | {"mamba_d_head": "auto"}
    assert cache_spec(auto).state_bytes() == cache_spec(BAMBA).state_bytes()


def test_layers_that_share_another_layer_s_keys_keep_none():
    gemma3n = {
        "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256,
        "sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_kv_shared_layers": 2,
    }  # fmt: skip
    assert kinds(gemma3n) == ["sliding", "full", "none", "none"]
    assert cache_spec(gemma3n).bytes_per_token == 2 * 2 * 2 * 256 * 2
    assert kinds(gemma3n | {"num_kv_shared_layers": 0}) == ["sliding", "full"] * 2


def test_layers_with_a_shape_of_their_own():
    gemma4 = {
        "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"],
    }  # fmt: skip
    told = {"1": {"head_dim": 512}, "x": {"head_dim": 1}, "9" * 9999: {}, "0": None}
    for own in ({"per_layer_config": told}, {"global_head_dim": 512}):
        assert [layer.head_dim for layer in cache_spec(gemma4 | own).layers] == [256, 512]
    fewer = {"attention_k_eq_v": True, "num_global_key_value_heads": 1}
    assert [layer.kv_heads for layer in cache_spec(gemma4 | fewer).layers] == [4, 1]


@pytest.mark.parametrize(
    ("config", "kv_heads"),
    [
        ({"model_type": "falcon", "num_kv_heads": 71}, 1),
        ({"model_type": "falcon", "multi_query": False}, 8),
        ({"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 2}, 2),
        ({"model_type": "gpt_bigcode"}, 1),
        ({"model_type": "gpt_bigcode", "multi_query": False}, 8),
        ({"model_type": "dbrx", "attn_config": {"kv_n_heads": 4}}, 4),
        ({"model_type": "chatglm", "multi_query_attention": True, "multi_query_group_num": 2}, 2),
        ({"multi_query": True}, 1),
        ({}, 8),
    ],
)
def test_kv_heads_under_other_names(config: dict[str, Any], kv_heads: int):
    shape = {"num_hidden_layers": 1, "num_attention_heads": 8, "hidden_size": 64}
    assert [layer.kv_heads for layer in cache_spec(shape | config).layers] == [kv_heads]


CONFIGS: list[dict[str, Any]] = [
    {}, DEEPSEEK_V3, QWEN3_NEXT_80B, MAMBA_2_7B, JAMBA, LLAMA_4_SCOUT, LLAMA_4_SCOUT["text_config"], BAMBA,
]  # fmt: skip
MORE_NAMES = (
    "layer_types", "layers_block_type", "hybrid_override_pattern", "text_config", "per_layer_config", "dtype",
    "sliding_window", "block_types", "lru_width", "conv_L_cache", "num_kv_shared_layers", "linear_attn_config",
)  # fmt: skip
NAMES = [*sorted({name for config in CONFIGS for name in config}), *MORE_NAMES]
PLAIN = (
    st.none() | st.booleans() | st.integers(-2, 300) | st.integers() | st.floats() | st.text(max_size=6)
    | st.sampled_from(["auto", "mamba", "attention", "hybrid", "full_attention", "M*-", "mamba2", "falcon_h1"])
)  # fmt: skip
VALUES = PLAIN | st.lists(PLAIN, max_size=3) | st.dictionaries(st.sampled_from(NAMES), PLAIN, max_size=3)


@given(st.sampled_from(CONFIGS), st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5))
def test_any_config_gives_a_shape_or_one_sentence(base: dict[str, Any], changes: dict[str, Any]):
    config = base | changes
    try:
        spec = cache_spec(config)
    except UnknownShape as error:
        assert str(error).endswith(".")
        assert "\n" not in str(error)
        assert len(str(error)) < 300
        return
    assert isinstance(spec, CacheSpec)
    assert spec.used_bytes(0) == 0 <= spec.used_bytes(10) <= spec.allocated_bytes(10)
    json.dumps(kv_report(config, 10))


def test_a_number_that_python_will_not_write_down():
    with pytest.raises(UnknownShape, match="not a number far too large"):
        cache_spec(JAMBA | {"num_hidden_layers": 10**5000})
