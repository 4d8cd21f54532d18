"""One decode step of a Llama-shaped model with little else around its matrices.

A library's forward serves every use of a model: masks, positions, hooks and outputs cost a small
model a fifth of each step. A decode step needs none of them: one position a row, all rows equally
long, nothing padded. This is the same arithmetic on the same weights, in the order in which the
library computes it. `lean_step` gives it only for a model whose logits it has just reproduced; all
others, and every prefill, go through the module. Knows no run and no sampling.
"""

import logging
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from playground.engine.cache import forward, new_cache

_log = logging.getLogger(__name__)

SHAPED_LIKE_LLAMA = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose decoder layer is: norm, grouped attention with rotary positions, norm, gated MLP."""

_TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest difference of a logit, as a share of the largest logit, for the same weights in another order."""

_HANDFUL, _BLOCK = range(4, 13), 32


@dataclass(frozen=True, slots=True)
class _Layer:
    """A decoder layer's weights; a matrix is (out, in), `qkv` and `gate_up` stacked on top of each other."""

    attention_norm: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    query_norm: Tensor | None
    key_norm: Tensor | None
    out: Tensor
    out_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: Tensor
    down: Tensor


class LeanStep:
    """A decode step: `step(ids, cache)` appends one position a row and returns the next logits."""

    def __init__(self, module: Any) -> None:
        config, first = module.config, module.model.layers[0].self_attn
        self._query_heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._head_dim, self._scaling = first.head_dim, first.scaling
        self._epsilon: float = config.rms_norm_eps
        self._embed, self._rotary = module.model.embed_tokens, module.model.rotary_emb
        self._layers = [_stacked(layer) for layer in module.model.layers]
        self._norm, self._head = module.model.norm.weight, module.lm_head.weight

    def __call__(self, ids: Tensor, cache: Any) -> Tensor:
        """`ids` are (rows, 1); the result is (rows, vocabulary) in fp32."""
        hidden = self._embed(ids[:, 0])
        place = torch.tensor([[cache.get_seq_length()]], device=ids.device)
        cos, sin = self._rotary(hidden[None], place)
        half = self._head_dim // 2
        turn = cos[0, 0], torch.cat((-sin[0, 0, :half], sin[0, 0, half:]))
        for layer, held in zip(self._layers, cache.layers, strict=True):
            hidden = self._attend(layer, held, hidden, turn)
            hidden = self._widen(layer, hidden)
        logits = _linear(self._normed(hidden, self._norm), self._head).float()
        return logits.cpu() if logits.device.type == "mps" else logits  # as `forward` does

    def _attend(self, layer: _Layer, held: Any, hidden: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        rows, queries, keys, width = len(hidden), self._query_heads, self._kv_heads, self._head_dim
        heads = _linear(self._normed(hidden, layer.attention_norm), layer.qkv, layer.qkv_bias)
        turned, value = heads.view(rows, -1, width).split((queries + keys, keys), dim=1)
        if layer.query_norm is not None and layer.key_norm is not None:
            query, key = turned.split((queries, keys), dim=1)
            query, key = self._normed(query, layer.query_norm), self._normed(key, layer.key_norm)
            turned = torch.cat((query, key), dim=1)
        cos, sin = turn
        turned = turned * cos + turned.roll(width // 2, -1) * sin  # rotary positions, both halves at once
        query, key = turned.split((queries, keys), dim=1)
        all_keys, all_values = held.update(key[:, :, None], value[:, :, None])
        # The query heads that share a KV head stand as positions of it: nothing is repeated.
        grouped = query.reshape(rows, keys, queries // keys, width)
        mixed = functional.scaled_dot_product_attention(grouped, all_keys, all_values, scale=self._scaling)
        return hidden + _linear(mixed.reshape(rows, -1), layer.out, layer.out_bias)

    def _widen(self, layer: _Layer, hidden: Tensor) -> Tensor:
        gate, up = _linear(self._normed(hidden, layer.mlp_norm), layer.gate_up).chunk(2, dim=-1)
        return hidden + _linear(functional.silu(gate) * up, layer.down)

    def _normed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        """Root-mean-square norm in fp32 (Zhang and Sennrich 2019, arXiv:1910.07467)."""
        if hidden.dtype == torch.float32:
            return functional.rms_norm(hidden, (hidden.shape[-1],), weight, self._epsilon)
        wide = hidden.float()  # 16-bit models round before the weight, as the library does
        scaled = wide * wide.square().mean(-1, keepdim=True).add_(self._epsilon).rsqrt_()
        return weight * scaled.to(hidden.dtype)


def lean_step(module: Any) -> LeanStep | None:
    """The decode step for `module`, or None where it is not shaped so or its logits came out otherwise.

    Query, key and value matrices of a layer are laid on top of each other in memory, gate and up
    likewise; the module's own parameters become views of them, so nothing is held twice.
    """
    if not _is_shaped_so(module):
        return None
    step = LeanStep(module)
    return step if _proven(module, step) else None


def _is_shaped_so(module: Any) -> bool:
    config = module.config
    if config.model_type not in SHAPED_LIKE_LLAMA or config.hidden_act != "silu":
        return False
    if getattr(config, "mlp_bias", False) or hasattr(module, "_hf_hook"):
        return False
    weights = list(module.parameters())
    matrices = [part for part in module.modules() if hasattr(part, "in_features")]
    return (
        len({(weight.device, weight.dtype) for weight in weights}) == 1
        and weights[0].dtype in _TOLERANCE
        and all(type(part) is nn.Linear for part in matrices)
    )


@torch.inference_mode()
def _proven(module: Any, step: LeanStep) -> bool:
    """Whether one step gives the module's own logits after the same two tokens, in two rows."""
    tokens = torch.arange(6, device=module.device).view(2, 3) * 7 % module.config.vocab_size
    logits = []
    for last in (lambda ids, cache: forward(module, ids, cache), step):
        cache = new_cache(module)
        forward(module, tokens[:, :2], cache)
        logits.append(last(tokens[:, 2:], cache))
    expected, found = logits
    difference = (expected - found).abs().max() / expected.abs().max()
    if difference <= _TOLERANCE[module.dtype]:
        return True
    _log.warning("The lean decode step differs from the model's own by %.1e and is not used.", difference)
    return False


def _stacked(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    heads = (attention.q_proj, attention.k_proj, attention.v_proj)
    biases = [part.bias for part in heads]
    norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
    return _Layer(
        attention_norm=layer.input_layernorm.weight,
        qkv=_on_top_of_each_other(heads),
        qkv_bias=None if biases[0] is None else torch.cat(biases).detach(),
        query_norm=norms[0] and norms[0].weight,
        key_norm=norms[1] and norms[1].weight,
        out=attention.o_proj.weight,
        out_bias=attention.o_proj.bias,
        mlp_norm=layer.post_attention_layernorm.weight,
        gate_up=_on_top_of_each_other((mlp.gate_proj, mlp.up_proj)),
        down=mlp.down_proj.weight,
    )


def _on_top_of_each_other(parts: tuple[nn.Linear, ...]) -> Tensor:
    """One (sum of outs, in) matrix; the parts' own weights become views of it."""
    whole = torch.cat([part.weight.detach() for part in parts])
    for part, view in zip(parts, whole.split([part.out_features for part in parts]), strict=True):
        part.weight = nn.Parameter(view, requires_grad=False)
    return whole


def _linear(hidden: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As `functional.linear` (rows, in) -> (rows, out), by the fastest way for few fp32 rows on a CPU.

    One row is a matrix times a vector. For a handful of rows the library copies the whole matrix into
    another order before it multiplies; as a batch of blocks it is read once, as for one row. Measured
    on 2 cores over all matrices of the default model: 4 rows 27 ms instead of 37, 8 rows 31 instead of 48.
    """
    rows, out = len(hidden), len(weight)
    if hidden.dtype != torch.float32 or hidden.device.type != "cpu":
        return functional.linear(hidden, weight, bias)
    if rows == 1:
        row = hidden[0]
        return (torch.mv(weight, row) if bias is None else torch.addmv(bias, weight, row))[None]
    if rows not in _HANDFUL or out % _BLOCK:
        return functional.linear(hidden, weight, bias)
    blocks = weight.view(out // _BLOCK, _BLOCK, -1).transpose(1, 2)
    product = torch.bmm(hidden.expand(len(blocks), *hidden.shape), blocks)
    flat = product.transpose(0, 1).reshape(rows, out)
    return flat if bias is None else flat.add_(bias)
