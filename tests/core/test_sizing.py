"""The JSON of `first-token kv`, without the command."""

import pytest

from playground.core.decoding import InvalidSetting
from playground.core.kv import UnknownShape
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
