"""Matrices in eight bits for a CPU: a quarter of the bytes that a decode step waits for.

Each row of a weight (out, in) gets a scale of its own and whole numbers from -127 to 127; what is multiplied with
them stays a number of its own kind (weight-only quantisation). Eight bits for what comes in as well, on one scale
for all of it, would be a third faster and is not done: the default model answers its first token with numbers so
large that the others drown in the steps (on its prompts 1 to 1.6 bits of divergence from the full model; with a
scale for each row 0.05 to 0.09, as it is done here 0.01). The embedding, the norms, attention and the cache stay
as they are. Knows no model's shape.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

NAME = "int8"
_FULL_RANGE = 127
_LEAST_SCALE = 1e-12
_FEW_ROWS = 8
"""Up to here the kernel that reads the bytes wins; beyond, the matrix is written out for the time of one product."""


def rounded(weight: Tensor) -> tuple[Tensor, Tensor]:
    """`weight` (out, in) as whole numbers in int8, and the scale of each row in bfloat16, which the kernel takes."""
    whole = weight.detach().float()
    scales = (whole.abs().amax(1) / _FULL_RANGE).clamp_min(_LEAST_SCALE).bfloat16()
    steps = (whole / scales.float()[:, None]).round_().clamp_(-_FULL_RANGE, _FULL_RANGE)
    return steps.to(torch.int8), scales


def times(hidden: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """(…, in) -> (…, out), as with the weight that `rounded` has rounded."""
    rows = hidden.reshape(-1, hidden.shape[-1])
    if len(rows) > _FEW_ROWS:
        return functional.linear(hidden, weight.to(hidden.dtype).mul_(scales[:, None]))
    product = torch._weight_int8pack_mm(rows.bfloat16(), weight, scales)
    return product.to(hidden.dtype).view(*hidden.shape[:-1], -1)


class Int8Linear(nn.Module):
    """In place of a linear layer; `weight` (out, in) and `scales` (out) as `rounded` gives them."""

    weight: Tensor
    scales: Tensor

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        weight, scales = rounded(layer.weight)
        self.register_buffer("weight", weight)
        self.register_buffer("scales", scales)
        self.bias = layer.bias

    def forward(self, hidden: Tensor) -> Tensor:
        """(…, in) -> (…, out)."""
        product = times(hidden, self.weight, self.scales)
        return product if self.bias is None else product + self.bias


def quantise(module: nn.Module) -> int:
    """Put every linear layer of `module` into eight bits, in place; the bytes of its weights afterwards."""
    for part in list(module.modules()):
        for name, child in list(part.named_children()):
            if type(child) is nn.Linear:
                setattr(part, name, Int8Linear(child))
    others = sum(weight.nbytes for weight in module.parameters())
    return others + sum(part.weight.nbytes + part.scales.nbytes for part in _layers(module))


def is_quantised(module: nn.Module) -> bool:
    """Whether `quantise` has been here."""
    return bool(_layers(module))


def bytes_per_weight(module: nn.Module) -> float:
    """Of the matrices that `quantise` has made, the scales of their rows included."""
    layers = _layers(module)
    held = sum(part.weight.nbytes + part.scales.nbytes for part in layers)
    return held / sum(part.weight.numel() for part in layers)


def _layers(module: nn.Module) -> list[Int8Linear]:
    return [part for part in module.modules() if isinstance(part, Int8Linear)]
