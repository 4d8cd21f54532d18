"""What is recorded of the raw logits of all lanes, before any stage, in one copy to the host.

Between two forwards every operation finds its code and data out of the processor's caches, so what
counts is how few they are. Knows no stage and no settings.
"""

import math
from dataclasses import dataclass

import torch

from playground.engine.pipeline import highest


class BrokenLogits(RuntimeError):
    """A model gave NaN or infinity, or no candidate at all."""


@dataclass(frozen=True, slots=True)
class RawRow:
    """One lane's logits (vocabulary,) in fp32 and what is recorded of them before any stage.

    On the device `probabilities` (vocabulary,) and `top`, the ids of the highest in falling order. On the
    host the same `ids` and their logits, at least one, of which `shown` are asked for; how many candidates
    are `possible`; the best one's log-probability (huge logits keep their differences to it), the logarithm
    of the sum of exponentials, and the entropy in nats.
    """

    logits: torch.Tensor
    probabilities: torch.Tensor
    top: torch.Tensor
    ids: list[int]
    top_logits: list[float]
    shown: int
    possible: int
    best_logprob: float
    logsumexp: float
    entropy: float


def raw_rows(logits: torch.Tensor, top_n: int) -> list[RawRow]:
    """All lanes' rows of `logits` (lanes, vocabulary), looked at together; raises `BrokenLogits`."""
    logprobs = logits.log_softmax(1)
    probabilities = logprobs.exp()
    top = highest(logits, max(top_n, 1))
    mean = torch.linalg.vecdot(probabilities, logprobs)[:, None]
    best = top[:, :1]
    numbers = torch.cat([mean, logprobs.gather(1, best), logits.gather(1, top), top], 1)
    return [  # fp32 holds an id up to 2^24 exactly
        _raw_row(logits[i], probabilities[i], top[i], row, top_n) for i, row in enumerate(numbers.tolist())
    ]


def _raw_row(
    logits: torch.Tensor, probabilities: torch.Tensor, top: torch.Tensor, row: list[float], top_n: int
) -> RawRow:
    mean_logprob, best_logprob, *rest = row
    top_logits, ids = rest[: len(top)], [int(id) for id in rest[len(top) :]]
    possible = len(logits)
    if not math.isfinite(mean_logprob):  # a candidate at -inf, or logits that are none
        possible = int((logits > -torch.inf).sum())
        if bool(logits.isnan().any()) or top_logits[0] == math.inf:
            raise BrokenLogits("its logits are not numbers")
        if not possible:
            raise BrokenLogits("it leaves no candidate")
        mean_logprob = -float(torch.special.entr(probabilities).sum())
    return RawRow(
        logits, probabilities, top, ids, top_logits, top_n, possible, best_logprob,
        logsumexp=top_logits[0] - best_logprob, entropy=max(0.0, -mean_logprob),
    )  # fmt: skip
