"""The JSON of `first-token kv`, without the command."""

from time import perf_counter

import pytest

from playground.core.decoding import InvalidSetting
from playground.core.kv import FORMATS, UnknownShape
from playground.core.sizing import kv_report

LLAMA_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "hidden_size": 4096, "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
    "tie_word_embeddings": False, "max_position_embeddings": 131072,
}  # fmt: skip


def test_llama_8b():
    report = kv_report(LLAMA_8B, tokens=4096, sequences=32)
    assert report["bytes_per_token"] == 131_072
    assert report["used_bytes"] == report["allocated_bytes"] == 16 * 2**30
    assert report["if_mha_bytes"] == 64 * 2**30
    assert report["if_mqa_bytes"] == 2 * 2**30
    assert report["weights_bytes"] == 8_030_261_248 * 2  # the parameter count on the model's card
    assert report["context"] == 131072


def test_the_layers_add_up_to_a_token():
    gpt_oss = {
        "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64,
        "sliding_window": 128, "layer_types": ["sliding_attention"] * 12 + ["full_attention"] * 12,
    }  # fmt: skip
    report = kv_report(gpt_oss, tokens=1000)
    assert [(layer["kind"], layer["count"], layer["window"]) for layer in report["layers"]] == [
        ("sliding", 12, 128), ("full", 12, None),
    ]  # fmt: skip
    assert (
        sum(layer["count"] * layer["bytes_per_token"] for layer in report["layers"])
        == report["bytes_per_token"]
    )
    assert report["used_bytes"] == 12 * 2048 * 128 + 12 * 2048 * 1000
    assert report["allocated_bytes"] == 24 * 2048 * 1000


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "gpt_oss"},
        {"model_type": None},
        {"mlp_bias": True},
        {"vocab_size": None},
        {"hidden_size": "x"},
        {"model_type": []},
        {"vocab_size": 10**400},
        {"vocab_size": float("inf")},
    ],
)
def test_weights_of_an_unknown_family_are_unknown(change):
    assert kv_report(LLAMA_8B | {"head_dim": 128} | change)["weights_bytes"] is None


@pytest.mark.parametrize("counts", [(0, 1), (1, 0), (-1, 1), (10**10, 1), (1.5, 1), (True, 1)])
def test_counts_out_of_range_are_one_sentence(counts):
    with pytest.raises(InvalidSetting, match="must be a whole number from 1 to"):
        kv_report(LLAMA_8B, *counts)


@pytest.mark.parametrize(
    "odd", [{"text_config": [1]}, {"max_position_embeddings": 10**400}, {"layer_types": 5}]
)
def test_odd_values_that_do_not_matter_are_left_out(odd):
    report = kv_report(LLAMA_8B | odd)
    assert report["bytes_per_token"] == 131_072
    assert report["context"] in (131_072, None)


def test_a_config_without_heads_is_one_sentence():
    with pytest.raises(UnknownShape, match="no num_attention_heads"):
        kv_report({"hidden_size": 64})


def test_a_token_drawn_down():
    """Case 34: 256 B a key, 512 B a head, 4,096 B a layer, 131,072 B a token."""
    token = kv_report(LLAMA_8B)["token"]
    assert (token["key_bytes"], token["head_bytes"], token["layer_bytes"]) == (256, 512, 4096)
    assert (token["layers"], token["all_layers_bytes"]) == (32, 131_072)


@pytest.mark.parametrize(
    ("dtype", "bytes_per_token"),
    [("float32", 262_144), ("bfloat16", 131_072), ("float8_e4m3fn", 65_536), ("int4", 36_864)],
)
def test_formats(dtype, bytes_per_token):
    """4-bit: 64 B of a key of 128 numbers, and a scale and a zero of 16 bits for each of its two groups."""
    report = kv_report(LLAMA_8B, dtype=dtype)
    assert report["bytes_per_token"] == bytes_per_token
    assert report["bits_per_number"] == {"int4": 4.5}.get(dtype, 8 * bytes_per_token / 65_536)


def test_a_begun_group_is_whole():
    assert FORMATS["int4"].vector_bytes(65) == 33 + 2 * 4
    assert FORMATS["int4"].vector_bytes(1) == 1 + 4


def test_a_state_is_not_quantised():
    config = {
        "model_type": "mamba", "num_hidden_layers": 2, "hidden_size": 8, "state_size": 4, "conv_kernel": 4,
        "intermediate_size": 16,
    }  # fmt: skip
    in_16_bit, in_4_bit = (kv_report(config, dtype=name)["state_bytes"] for name in ("bfloat16", "int4"))
    assert in_16_bit == in_4_bit > 0


def test_weights_in_another_format_than_the_cache():
    report = kv_report(LLAMA_8B, dtype="int4", weights_dtype="bfloat16")
    assert report["weights_bytes"] == 16_060_522_496
    with pytest.raises(InvalidSetting, match="weights_dtype must be one of"):
        kv_report(LLAMA_8B, weights_dtype="int3")


def test_parameters_from_elsewhere_count_where_the_family_is_not():
    other = LLAMA_8B | {"model_type": "something"}
    assert kv_report(other)["parameters"] is None
    assert kv_report(other, parameters=7)["weights_bytes"] == 14
    assert kv_report(LLAMA_8B, parameters=7)["parameters"] == 8_030_261_248


def test_a_memory_to_hold_it_against():
    fit = kv_report(LLAMA_8B, 4096, 32, memory_bytes=80 * 10**9)["fit"]
    assert fit["fits"] is True
    assert fit["largest_sequences"] > 32
    assert kv_report(LLAMA_8B)["fit"] is None
    with pytest.raises(InvalidSetting, match="memory_bytes"):
        kv_report(LLAMA_8B, memory_bytes=0)


@pytest.mark.alone
def test_the_largest_config_answers_at_once():
    layers = 10_000
    config = LLAMA_8B | {
        "num_hidden_layers": layers, "layer_types": ["sliding_attention", "full_attention"] * (layers // 2),
        "sliding_window": 128,
    }  # fmt: skip
    times = []
    for _ in range(3):  # a browser of another test may have the core for a while
        began = perf_counter()
        kv_report(config, 128_000, 32, memory_bytes=80 * 10**9)
        times.append(perf_counter() - began)
    assert min(times) < 1.0
