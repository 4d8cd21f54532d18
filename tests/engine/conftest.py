"""Tiny seeded models built in-process: an architecture is tested without a download."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from playground.core.kv import UnknownShape, cache_spec
from playground.core.request import ModelFacts
from playground.engine.model import LoadedModel

CORPUS = [
    "hello world, the quick brown fox 😊 says 聪 of gravity",
    "One day, Lily met a cat",
    "own fox os Hello",
]
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def byte_level_tokenizer(template: str | None = TEMPLATE, *, adds_bos: bool = False) -> Any:
    """A byte-level BPE of 400 entries over a few sentences; `adds_bos` makes it add <s> by itself."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "</s>", "<|user|>", "<|assistant|>", "<|system|>"],
    )
    tokenizer.train_from_iterator(CORPUS * 3, trainer)
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.chat_template = template
    return fast


def tiny_module(vocabulary: int, kind: str = "llama", **changes: Any) -> Any:
    """A seeded two-layer model whose logits are spread enough to have clear winners."""
    shape = dict(
        vocab_size=vocabulary, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=1024, initializer_range=0.3,
        bos_token_id=0, eos_token_id=1, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **(shape | changes))).eval()


def loaded(module: Any, tokenizer: Any, **facts: Any) -> LoadedModel:
    """A LoadedModel around a module that was never on disk."""
    config = module.config.to_dict()
    try:
        spec = cache_spec(config, str(module.dtype).removeprefix("torch."))
    except UnknownShape:
        spec = None
    values = dict(
        name="tiny", revision=None, device="cpu", dtype=str(module.dtype).removeprefix("torch."),
        vocabulary=config["vocab_size"], context=config.get("max_position_embeddings"),
        kv_bytes_per_token=spec.bytes_per_token if spec else None,
    )  # fmt: skip
    return LoadedModel(module, tokenizer, ModelFacts(**(values | facts)), spec, frozenset({1}), 0.0)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return byte_level_tokenizer()


@pytest.fixture(scope="session")
def make_model(tokenizer: Any) -> Callable[..., LoadedModel]:
    def make(kind: str = "llama", **changes: Any) -> LoadedModel:
        return loaded(tiny_module(len(tokenizer), kind, **changes), tokenizer)

    return make


@pytest.fixture(scope="session")
def model(make_model: Callable[..., LoadedModel]) -> LoadedModel:
    return make_model()
