"""One tiny seeded model of each family, built from its config: an architecture without a download.

Two to four layers that cover every kind of layer the family has, windows short enough that 64 tokens
slide past them, weights spread so that greedy answers vary. A module is built once a process; each
`tiny` is a fresh LoadedModel around it, so no test sees another's caches.
"""

from functools import cache
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from playground.engine.lean import LeanStep, lean_step
from playground.engine.model import LoadedModel
from tests.engine.conftest import byte_level_tokenizer, loaded

WINDOW = 16
VOCABULARY = 336
"""More rows than the tokenizer has entries, as many published models do."""

_COMMON = dict(
    vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, initializer_range=0.3,
    bos_token_id=0, eos_token_id=1, pad_token_id=0, tie_word_embeddings=False,
)  # fmt: skip
_ATTENTION = _COMMON | dict(
    intermediate_size=128, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=2048
)
_GPT2 = dict(
    vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, n_positions=2048, initializer_range=0.3,
    bos_token_id=0, eos_token_id=1, tie_word_embeddings=False,
)  # fmt: skip
_SLIDING, _FULL = "sliding_attention", "full_attention"
_GEMMA = _ATTENTION | dict(num_hidden_layers=4, head_dim=16, query_pre_attn_scalar=16, sliding_window=WINDOW)
_EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=32)
_MAMBA = dict(mamba_d_head=16, mamba_n_groups=2, mamba_d_state=16, mamba_chunk_size=8)

CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": _GPT2,
    "gpt_bigcode": _GPT2 | dict(multi_query=True),
    "llama": _ATTENTION,
    "qwen2": _ATTENTION,
    "qwen3": _ATTENTION | dict(head_dim=32),
    "mistral": _ATTENTION | dict(sliding_window=WINDOW),
    "gemma2": _GEMMA,
    "gemma3_text": _GEMMA | dict(layer_types=[_SLIDING, _SLIDING, _FULL, _SLIDING]),
    "gpt_oss": _ATTENTION
    | dict(
        num_hidden_layers=4, head_dim=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=WINDOW,
        layer_types=[_SLIDING, _FULL, _SLIDING, _FULL],
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    ),
    "llama4_text": _ATTENTION
    | dict(
        num_hidden_layers=4, head_dim=16, attention_chunk_size=WINDOW, intermediate_size_mlp=128,
        num_local_experts=2, num_experts_per_tok=1, no_rope_layer_interval=2, interleave_moe_layer_step=2,
    ),
    "deepseek_v3": _ATTENTION
    | _EXPERTS
    | dict(
        num_hidden_layers=3, num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=16, qk_rope_head_dim=8,
        qk_nope_head_dim=16, v_head_dim=16, n_routed_experts=4, n_shared_experts=1, n_group=2, topk_group=1,
        first_k_dense_replace=1,
    ),
    "qwen3_next": _ATTENTION
    | _EXPERTS
    | dict(
        num_hidden_layers=4, head_dim=16, num_experts=4, shared_expert_intermediate_size=32,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16,
    ),
    "mamba2": _COMMON | dict(num_heads=8, head_dim=16, state_size=16, n_groups=2, chunk_size=8, expand=2),
    "bamba": _ATTENTION | _MAMBA | dict(num_hidden_layers=3, attn_layer_indices=[1], mamba_n_heads=8),
    "falcon_h1": _ATTENTION | _MAMBA | dict(head_dim=16, mamba_d_ssm=64, mamba_n_heads=4),
    "lfm2": _ATTENTION | dict(layer_types=["conv", _FULL]),
}  # fmt: skip

FAMILIES = tuple(CONFIGS)
WINDOWED = ("mistral", "gemma2", "gemma3_text", "gpt_oss", "llama4_text")
"""Families with layers that keep a window of the past; it is `WINDOW` tokens here."""
WITH_STATE = ("qwen3_next", "mamba2", "bamba", "falcon_h1", "lfm2")
"""Families with layers whose state has a constant size."""


@cache
def module(name: str) -> Any:
    """The family's seeded module in fp32 and eval mode; shared, so leave it as it is."""
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **CONFIGS[name])).eval()


@cache
def tokenizer() -> Any:
    """The byte-level tokenizer of all families."""
    return byte_level_tokenizer()


def tiny(name: str, *, stop_ids: frozenset[int] = frozenset()) -> LoadedModel:
    """A model of the family; without stop tokens, so that a run is as long as it was asked to be."""
    model = loaded(module(name), tokenizer())
    model.stop_ids = stop_ids
    model.lean_step = _lean(name)
    return model


@cache
def _lean(name: str) -> LeanStep | None:
    return lean_step(module(name))
