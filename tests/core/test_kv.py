"""KV arithmetic against hand-computed values of published configs (cases 34 to 38)."""

import pytest

from playground.core.kv import UnknownShape, cache_spec

MIB, GIB = 2**20, 2**30
LLAMA_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "hidden_size": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
SMOLLM2 = {
    "num_hidden_layers": 30, "num_attention_heads": 9, "num_key_value_heads": 3, "hidden_size": 576,
}  # fmt: skip
QWEN3_06B = {
    "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "hidden_size": 1024, "dtype": "bfloat16", "use_sliding_window": False, "sliding_window": None,
}  # fmt: skip
GPT_OSS_20B = {
    "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
    "hidden_size": 2880, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"] * 12,
}  # fmt: skip
GEMMA3_4B = {
    "model_type": "gemma3",
    "dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma3_text", "num_hidden_layers": 34, "num_attention_heads": 8,
        "num_key_value_heads": 4, "head_dim": 256, "hidden_size": 2560, "sliding_window": 1024,
    },
}  # fmt: skip


def test_llama_3_8b():
    """Case 34."""
    spec = cache_spec(LLAMA_8B)
    assert spec.bytes_per_token == 131_072
    assert spec.used_bytes(4096) == 512 * MIB
    assert spec.used_bytes(128_000) / GIB == 15.625
    assert spec.used_bytes(4096, 32) == 16 * GIB
    assert spec.allocated_bytes(4096, 32) == 16 * GIB


def test_heads_are_not_kv_heads():
    """Case 34."""
    mha = cache_spec(LLAMA_8B | {"num_key_value_heads": 32})
    assert mha.bytes_per_token == 524_288
    assert mha.used_bytes(4096, 32) == 64 * GIB
    assert cache_spec(LLAMA_8B).with_kv_heads(32) == mha
    assert cache_spec(LLAMA_8B).with_kv_heads(1).bytes_per_token == 131_072 // 8


def test_without_kv_heads_a_config_is_multi_head_and_gpt2_names_are_known():
    gpt2 = {"n_layer": 12, "n_head": 12, "n_embd": 768}
    assert cache_spec(gpt2).bytes_per_token == 2 * 12 * 12 * 64 * 2
    assert cache_spec(gpt2 | {"multi_query": True}).bytes_per_token == 2 * 12 * 64 * 2


def test_smollm2():
    assert cache_spec(SMOLLM2, "float32").bytes_per_token == 46_080
    assert cache_spec(SMOLLM2, "bfloat16").bytes_per_token == 23_040
    assert cache_spec(SMOLLM2).dtype == "bfloat16"


def test_an_explicit_head_dim_wins():
    """Case 35."""
    assert cache_spec(QWEN3_06B).bytes_per_token == 114_688
    assert cache_spec(QWEN3_06B | {"head_dim": None}).bytes_per_token == 114_688 // 2


@pytest.mark.parametrize(
    ("tokens", "used", "allocated"),
    [
        (128, 24 * 2048 * 128, 24 * 2048 * 128),
        (1_000, 12 * 2048 * (128 + 1_000), 24 * 2048 * 1_000),
        (32_000, 12 * 2048 * (128 + 32_000), 24 * 2048 * 32_000),
    ],
)
def test_windowed_layers_of_gpt_oss_stop_growing(tokens, used, allocated):
    """Case 36."""
    spec = cache_spec(GPT_OSS_20B)
    assert spec.used_bytes(tokens) == used
    assert spec.allocated_bytes(tokens) == allocated
    assert spec.used_bytes(tokens, 7) == 7 * used


@pytest.mark.parametrize(("tokens", "windowed"), [(128, 128), (1_000, 1_000), (32_000, 1_024)])
def test_gemma_3_has_full_attention_in_every_sixth_layer(tokens, windowed):
    """Case 36."""
    spec = cache_spec(GEMMA3_4B)
    per_layer = 2 * 4 * 256 * 2
    assert [layer.kind for layer in spec.layers[:7]] == ["sliding"] * 5 + ["full", "sliding"]
    assert spec.used_bytes(tokens) == per_layer * (29 * windowed + 5 * tokens)
    assert spec.allocated_bytes(tokens) == per_layer * 34 * tokens
    assert spec.dtype == "bfloat16"


def test_other_ways_to_say_which_layers_slide():
    mistral = LLAMA_8B | {"sliding_window": 4096}
    assert {layer.window for layer in cache_spec(mistral).layers} == {4096}
    gemma2 = LLAMA_8B | {"model_type": "gemma2", "sliding_window": 4096}
    assert [layer.window for layer in cache_spec(gemma2).layers[:4]] == [4096, None, 4096, None]
    qwen2 = LLAMA_8B | {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 28}
    assert [(s.kind, n) for s, n in cache_spec(qwen2).grouped()] == [("full", 28), ("sliding", 4)]
    mixed = ["chunked_attention", "full_attention"] * 16
    llama4 = LLAMA_8B | {"layer_types": mixed, "attention_chunk_size": 8192}
    assert [(s.kind, s.window) for s in cache_spec(llama4).layers] == [("chunked", 8192), ("full", None)] * 16


def test_nothing_is_held_before_the_first_token():
    assert cache_spec(GPT_OSS_20B).used_bytes(0) == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_hidden_layers": None}, "has no num_hidden_layers"),
        ({"num_attention_heads": "32"}, "num_attention_heads must be a whole number above 0"),
        ({"num_attention_heads": 0}, "num_attention_heads must be a whole number above 0"),
        ({"num_hidden_layers": True}, "num_hidden_layers must be a whole number above 0"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers must be at most 10,000"),
        ({"num_attention_heads": 10**400}, "num_attention_heads must be a whole number above 0 and at most"),
        ({"num_key_value_heads": 10**400}, "num_key_value_heads and head_dim must be whole"),
        ({"layer_types": 5, "num_hidden_layers": "x"}, "num_hidden_layers must be a whole number above 0"),
        ({"num_key_value_heads": [8, 8]}, "num_key_value_heads and head_dim must be whole"),
        ({"head_dim": -1}, "num_key_value_heads and head_dim must be whole"),
        ({"head_dim": 0}, "num_key_value_heads and head_dim must be whole"),
        ({"hidden_size": 8}, "width of 8 is no multiple of its 32 heads"),
        ({"num_attention_heads": 33}, "width of 4,096 is no multiple of its 33 heads"),
        ({"num_key_value_heads": 7}, "32 heads over 7 KV heads, which cannot share them evenly"),
        ({"num_key_value_heads": 64}, "32 heads over 64 KV heads"),
        ({"num_hidden_layers": -1, "layer_types": ["full_attention"]}, "num_hidden_layers must be a whole"),
        ({"num_kv_shared_layers": 32}, "num_kv_shared_layers must be fewer than all layers"),
        ({"torch_dtype": "int3"}, "dtype 'int3' is not known"),
        ({"layer_types": ["sliding_attention"] * 32}, "has no sliding_window"),
        (
            {"layer_types": ["full_attention"] * 31},
            "layer_types lists 31 layers where num_hidden_layers says 32",
        ),
        (
            {"layer_types": ["full_attention"] * 33},
            "layer_types lists 33 layers where num_hidden_layers says 32",
        ),
        ({"layer_types": []}, "layer_types lists 0 layers"),
        ({"layer_types": [], "num_hidden_layers": None}, "has no num_hidden_layers"),
        (
            {"hybrid_override_pattern": "M*-"},
            "hybrid_override_pattern lists 3 layers where num_hidden_layers says 32",
        ),
        ({"sliding_window": "wide"}, "sliding_window must be a whole number"),
        ({"kv_lora_rank": 512}, "has no qk_rope_head_dim"),
        ({"layer_types": ["linear_attention"] * 32}, "constant state and does not tell its shape"),
        ({"layer_types": ["a new one"]}, "kind 'a new one' is not known"),
        ({"layer_types": [{}]}, "kind {} is not known"),
        (
            {"layer_types": ["full_attention"] * 10_001, "num_hidden_layers": 10_001},
            "num_hidden_layers must be at most 10,000",
        ),
        ({"state_size": 16, "conv_kernel": 4, "expand": 2}, "does not tell which they are"),
        ({"state_size": 16, "conv_kernel": 4, "model_type": "mamba"}, "has no expand"),
        ({"index_head_dim": 128, "kv_lora_rank": 512}, "which the arithmetic does not cover"),
        ({"model_type": "rwkv"}, "which the arithmetic does not cover"),
        (
            {"mamba_d_state": 8, "mamba_d_conv": 4, "mamba_n_groups": 1, "layer_types": ["mamba"] * 32},
            "state-space heads",
        ),
    ],
)
def test_what_cannot_be_computed_is_said(changes, words):
    with pytest.raises(UnknownShape, match=words):
        cache_spec(LLAMA_8B | changes)


def test_dtype_order_is_argument_config_then_16_bit():
    assert cache_spec(LLAMA_8B, "torch.float16").dtype == "float16"
    assert cache_spec(LLAMA_8B | {"dtype": "float32"}).dtype == "float32"
    assert cache_spec({**LLAMA_8B, "torch_dtype": None}).dtype == "bfloat16"
