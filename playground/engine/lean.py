"""One decode step of a Llama-shaped model with little else around its matrices.

A library's forward serves every use of a model: masks, positions, hooks and outputs cost a small
model a fifth of each step. A decode step needs none of them: one position a row, all rows equally
long, nothing padded. This is the same arithmetic on the same weights. Between two matrices every
operation finds its code out of the processor's caches, so what counts there is how few they are; a
single row on a CPU in fp32 is a vector throughout. `lean_step` gives it only for a model whose logits
it has just reproduced, alone and in several rows; all others, and every prefill, go through the
module. Knows no run and no sampling.
"""

import logging
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from playground.engine.cache import forward, new_cache
from playground.engine.int8 import Int8Linear, is_quantised, times

_log = logging.getLogger(__name__)

SHAPED_LIKE_LLAMA = ("llama", "mistral", "qwen2", "qwen3")
"""Model types whose decoder layer is: norm, grouped attention with rotary positions, norm, gated MLP."""

_TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Largest difference of a logit, as a share of the largest logit, for the same weights in another order."""

_TOLERANCE_IN_8_BIT = _TOLERANCE[torch.bfloat16]
"""What is multiplied is rounded to bfloat16."""

_HANDFUL, _BLOCK = range(4, 13), 32


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A weight (out, in), and the same memory seen as blocks (out / 32, in, 32) where that helps.

    In eight bits it has a scale for each row (see int8).
    """

    weight: Tensor
    blocks: Tensor | None = None
    scales: Tensor | None = None


@dataclass(frozen=True, slots=True)
class _Layer:
    """A decoder layer's weights, `qkv` and `gate_up` stacked on top of each other."""

    attention_norm: Tensor
    qkv: _Matrix
    qkv_bias: Tensor | None
    query_norm: Tensor | None
    key_norm: Tensor | None
    out: _Matrix
    out_bias: Tensor | None
    mlp_norm: Tensor
    gate_up: _Matrix
    down: _Matrix


class LeanStep:
    """A decode step: `step(ids, cache)` appends one position a row and returns the next logits."""

    def __init__(self, module: Any) -> None:
        config, first = module.config, module.model.layers[0].self_attn
        self._query_heads, self._kv_heads = config.num_attention_heads, config.num_key_value_heads
        self._head_dim, self._scaling = first.head_dim, first.scaling
        self._epsilon: float = config.rms_norm_eps
        self._embed, self._rotary = module.model.embed_tokens, module.model.rotary_emb
        self._layers = [_stacked(layer) for layer in module.model.layers]
        self._norm, self._head = module.model.norm.weight, _matrix((module.lm_head,))

    def __call__(self, ids: Tensor, cache: Any) -> Tensor:
        """`ids` are (rows, 1); the result is (rows, vocabulary) in fp32."""
        hidden = self._embed(ids[:, 0])
        if len(hidden) == 1 and _on_cpu_in_fp32(hidden):
            hidden = hidden[0]
        rotation = self._rotation(hidden, cache.get_seq_length())
        for layer, held in zip(self._layers, cache.layers, strict=True):
            hidden = self._attend(layer, held, hidden, rotation)
            hidden = self._widen(layer, hidden)
        logits = _linear(self._normed(hidden, self._norm), self._head).view(len(ids), -1).float()
        return logits.cpu() if logits.device.type == "mps" else logits  # as `forward` does

    def _rotation(self, hidden: Tensor, position: int) -> Tensor:
        """Rotary position embedding (Su et al. 2021, arXiv:2104.09864) at one position, as a matrix.

        A head times this (head_dim, head_dim) is the head turned: one operation instead of four.
        """
        place = torch.tensor([[position]], device=hidden.device)
        cos, sin = (part[0, 0] for part in self._rotary(hidden[None], place))
        half = self._head_dim // 2
        return torch.diag(cos) + torch.diag(-sin[:half], -half) + torch.diag(sin[half:], half)

    def _attend(self, layer: _Layer, held: Any, hidden: Tensor, rotation: Tensor) -> Tensor:
        queries, keys, width = self._query_heads, self._kv_heads, self._head_dim
        heads = _linear(self._normed(hidden, layer.attention_norm), layer.qkv, layer.qkv_bias)
        turning, value = heads.view(-1, queries + 2 * keys, width).split((queries + keys, keys), 1)
        if layer.query_norm is not None and layer.key_norm is not None:
            query, key = turning.split((queries, keys), 1)
            turning = torch.cat((self._normed(query, layer.query_norm), self._normed(key, layer.key_norm)), 1)
        turned = torch.mm(turning.reshape(-1, width), rotation).view(-1, queries + keys, width)
        query, key = turned.split((queries, keys), 1)
        all_keys, all_values = held.update(key.unsqueeze(2), value.unsqueeze(2))
        # The query heads that share a KV head stand as positions of it: nothing is repeated.
        grouped = query.reshape(-1, keys, queries // keys, width)
        mixed = functional.scaled_dot_product_attention(grouped, all_keys, all_values, scale=self._scaling)
        flat = mixed.view(-1) if hidden.dim() == 1 else mixed.reshape(len(hidden), -1)
        return _added(hidden, flat, layer.out, layer.out_bias)

    def _widen(self, layer: _Layer, hidden: Tensor) -> Tensor:
        gate, up = _linear(self._normed(hidden, layer.mlp_norm), layer.gate_up).chunk(2, dim=-1)
        return _added(hidden, functional.silu(gate).mul_(up), layer.down)

    def _normed(self, hidden: Tensor, weight: Tensor) -> Tensor:
        """Root-mean-square norm in fp32 (Zhang and Sennrich 2019, arXiv:1910.07467)."""
        if hidden.dim() == 1:  # in half the time
            mean_square = float(hidden.dot(hidden)) / len(hidden)
            return (hidden * weight).mul_((mean_square + self._epsilon) ** -0.5)
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
    if getattr(config, "mlp_bias", False) or any(hasattr(part, "_hf_hook") for part in module.modules()):
        return (
            False  # a hook fetches weights before the module's own forward, which a lean step would not call
        )
    weights = list(module.parameters())
    matrices = [part for part in module.modules() if hasattr(part, "in_features")]
    return (
        len({(weight.device, weight.dtype) for weight in weights}) == 1
        and weights[0].dtype in _TOLERANCE
        and len({type(part) for part in matrices}) == 1
        and type(matrices[0]) in (nn.Linear, Int8Linear)
    )


@torch.inference_mode()
def _proven(module: Any, step: LeanStep) -> bool:
    """Whether one step gives the module's own logits after the same two tokens, for every way of `_linear`."""
    tolerance = _TOLERANCE_IN_8_BIT if is_quantised(module) else _TOLERANCE[module.dtype]
    for rows in (1, 2, _HANDFUL[0]):
        difference = float(_difference(module, step, rows))
        if not difference <= tolerance:  # also where it is not a number
            _log.warning(
                "The lean decode step differs from the model's own by %.1e and is not used.", difference
            )
            return False
    return True


def _difference(module: Any, step: LeanStep, rows: int) -> Tensor:
    """The largest of a logit, as a share of the largest logit."""
    tokens = torch.arange(rows * 3, device=module.device).view(rows, 3) * 7 % module.config.vocab_size
    logits = []
    for last in (lambda ids, cache: forward(module, ids, cache), step):
        cache = new_cache(module)
        forward(module, tokens[:, :2], cache)
        logits.append(last(tokens[:, 2:], cache))
    expected, found = logits
    return (expected - found).abs().max() / expected.abs().max()


def _stacked(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    heads = (attention.q_proj, attention.k_proj, attention.v_proj)
    norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
    return _Layer(
        attention_norm=layer.input_layernorm.weight,
        qkv=_matrix(heads),
        qkv_bias=_bias(heads),
        query_norm=norms[0] and norms[0].weight,
        key_norm=norms[1] and norms[1].weight,
        out=_matrix((attention.o_proj,)),
        out_bias=_bias((attention.o_proj,)),
        mlp_norm=layer.post_attention_layernorm.weight,
        gate_up=_matrix((mlp.gate_proj, mlp.up_proj)),
        down=_matrix((mlp.down_proj,)),
    )


def _bias(parts: tuple[Any, ...]) -> Tensor | None:
    biases = [part.bias for part in parts if getattr(part, "bias", None) is not None]
    return torch.cat(biases).detach() if biases else None


def _on_top_of_each_other(parts: tuple[Any, ...]) -> Tensor:
    """One (sum of outs, in) matrix; the parts' own weights become views of it."""
    whole = torch.cat([part.weight.detach() for part in parts])
    for part, view in zip(parts, whole.split([part.out_features for part in parts]), strict=True):
        part.weight = nn.Parameter(view, requires_grad=False) if type(part) is nn.Linear else view
    return whole


def _on_cpu_in_fp32(hidden: Tensor) -> bool:
    return hidden.dtype == torch.float32 and hidden.device.type == "cpu"


def _matrix(parts: tuple[Any, ...]) -> _Matrix:
    """The matrix of linear layers that lie, or are laid, on top of each other."""
    weight = parts[0].weight if len(parts) == 1 else _on_top_of_each_other(parts)
    if isinstance(parts[0], Int8Linear):
        return _Matrix(weight, scales=torch.cat([part.scales for part in parts]))
    whole = _on_cpu_in_fp32(weight) and len(weight) % _BLOCK == 0
    return _Matrix(weight, weight.view(-1, _BLOCK, weight.shape[1]).transpose(1, 2) if whole else None)


def _added(hidden: Tensor, more: Tensor, matrix: _Matrix, bias: Tensor | None = None) -> Tensor:
    """`hidden` and the product of `more` with `matrix`."""
    if hidden.dim() == 1 and bias is None and matrix.scales is None:
        return torch.addmv(hidden, matrix.weight, more)
    return hidden + _linear(more, matrix, bias)


def _linear(hidden: Tensor, matrix: _Matrix, bias: Tensor | None = None) -> Tensor:
    """As `functional.linear` (rows, in) -> (rows, out), by the fastest way for few fp32 rows on a CPU.

    One row, given as a vector, is a matrix times a vector. For a handful of rows the library copies the
    whole matrix into another order before it multiplies; as a batch of blocks it is read once, as for one
    row. Measured on 2 cores over all matrices of the default model: 1 row 19 ms, 4 rows 25 ms (the
    library: 35).
    """
    if matrix.scales is not None:
        product = times(hidden, matrix.weight, matrix.scales)
        return product if bias is None else product.add_(bias)
    if hidden.dim() == 1:
        return torch.mv(matrix.weight, hidden) if bias is None else torch.addmv(bias, matrix.weight, hidden)
    if matrix.blocks is None or len(hidden) not in _HANDFUL:
        return functional.linear(hidden, matrix.weight, bias)
    product = torch.bmm(hidden.expand(len(matrix.blocks), -1, -1), matrix.blocks)
    flat = product.transpose(0, 1).reshape(len(hidden), -1)
    return flat if bias is None else flat.add_(bias)
