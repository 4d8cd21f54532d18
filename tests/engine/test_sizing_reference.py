"""The arithmetic for weights against the parameters of modules that transformers builds (none has storage)."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from playground.core.kv import cache_spec
from playground.core.sizing import parameter_count


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2", "qwen3"])
@pytest.mark.parametrize("tied", [True, False])
def test_weights(family: str, tied: bool) -> None:
    config = AutoConfig.for_model(
        family, vocab_size=1000, hidden_size=64, intermediate_size=176, num_hidden_layers=3,
        num_attention_heads=4, num_key_value_heads=2, head_dim=16, tie_word_embeddings=tied,
        sliding_window=None,
    )  # fmt: skip
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config)
    module.tie_weights()
    plain = config.to_dict()
    assert parameter_count(plain, cache_spec(plain)) == sum(p.numel() for p in module.parameters())


def test_attention_biases_of_llama_count() -> None:
    config = AutoConfig.for_model(
        "llama", vocab_size=100, hidden_size=64, intermediate_size=176, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, attention_bias=True, tie_word_embeddings=False,
    )  # fmt: skip
    with torch.device("meta"):
        module = AutoModelForCausalLM.from_config(config)
    plain = config.to_dict()
    assert parameter_count(plain, cache_spec(plain)) == sum(p.numel() for p in module.parameters())
