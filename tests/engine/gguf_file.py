"""Writes a tiny seeded GGUF file: a Llama of two layers with the tests' own tokenizer."""

import json
from pathlib import Path

import gguf
import numpy as np

from tests.engine.conftest import TEMPLATE, byte_level_tokenizer

LAYERS, HIDDEN, INNER, HEADS, KV_HEADS = 2, 64, 128, 4, 2
_SHAPES = {
    "attn_q": (HIDDEN, HIDDEN), "attn_k": (HIDDEN // 2, HIDDEN), "attn_v": (HIDDEN // 2, HIDDEN),
    "attn_output": (HIDDEN, HIDDEN), "ffn_gate": (INNER, HIDDEN), "ffn_up": (INNER, HIDDEN),
    "ffn_down": (HIDDEN, INNER),
}  # fmt: skip


def write_gguf(file: Path) -> Path:
    """Matrices in Q8_0, norms in float32, output tied to the embedding."""
    writer = gguf.GGUFWriter(file, "llama")
    size = _write_vocabulary(writer)
    writer.add_name("tiny")
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(size)
    random = np.random.default_rng(0)
    matrices = {"token_embd": (size, HIDDEN)}
    for layer in range(LAYERS):
        matrices |= {f"blk.{layer}.{name}": shape for name, shape in _SHAPES.items()}
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{norm}.weight", np.ones(HIDDEN, np.float32))
    writer.add_tensor("output_norm.weight", np.ones(HIDDEN, np.float32))
    for name, shape in matrices.items():
        values = random.normal(0, 0.3, shape).astype(np.float32)
        packed = gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(f"{name}.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def _write_vocabulary(writer: gguf.GGUFWriter) -> int:
    tokenizer = byte_level_tokenizer()
    described = json.loads(tokenizer.backend_tokenizer.to_str())
    special = {entry["id"] for entry in described["added_tokens"]}
    pieces = sorted(described["model"]["vocab"], key=described["model"]["vocab"].get)
    kinds = [gguf.TokenType.CONTROL if id in special else gguf.TokenType.NORMAL for id in range(len(pieces))]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in described["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(pieces)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template(TEMPLATE)
    return len(pieces)
