"""Sampling as a list of named stages, in the order in which `generate` applies them.

Each stage takes ids (1, positions) and scores (1, vocabulary) and returns scores of the same shape,
a removed candidate at -inf. They are transformers' own processors, except where those sort the whole
vocabulary. The same list draws the token and is looked into for the record: there is no second
implementation for the chart. Knows no model and no draw.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TypicalLogitsWarper,
)  # fmt: skip

from playground.core.decoding import Decoding, Stage

NEAR = 10.0
"""Candidates within this many logits of the best are ranked; those below have e^-10 of its weight."""

_TIE = 1e-6
"""A candidate is not needed where less than this share of its own mass is missing to top-p."""

Apply = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class SamplingStage:
    """A named step of the pipeline; `filters` tells removing stages from reshaping ones."""

    name: Stage
    apply: Apply
    filters: bool


def build(decoding: Decoding, prompt_tokens: int) -> tuple[SamplingStage, ...]:
    """The stages that `decoding` asks for; nothing that is not visible there ever acts."""
    makers: dict[Stage, Callable[[], Apply]] = {
        "repetition_penalty": lambda: RepetitionPenaltyLogitsProcessor(
            decoding.repetition_penalty,
            prompt_ignore_length=prompt_tokens if decoding.penalty_scope == "output" else None,
        ),
        "temperature": lambda: TemperatureLogitsWarper(float(decoding.temperature)),
        "top_k": lambda: TopKLogitsWarper(decoding.top_k),
        "top_p": lambda: TopP(decoding.top_p),
        "min_p": lambda: MinPLogitsWarper(decoding.min_p),
        "typical_p": lambda: TypicalLogitsWarper(max(decoding.typical_p, 1e-6)),
    }
    reshaping = ("repetition_penalty", "temperature")
    return tuple(
        SamplingStage(name, makers[name](), name not in reshaping) for name in decoding.active_stages()
    )


class TopP:
    """Nucleus sampling (Holtzman et al. 2020, arXiv:1904.09751): the smallest set that reaches p.

    A candidate stays while the mass before it is below p, so at least one does. Cumulated in fp64
    over the candidates near the best, which nearly always hold the nucleus; the whole vocabulary is
    sorted only where they do not.
    """

    def __init__(self, top_p: float) -> None:
        self.top_p = top_p

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores (1, vocabulary) with everything outside the nucleus at -inf."""
        row = scores[0]
        log_z = log_sum(row)
        head, order = ranked(row, row > row.max() - NEAR)
        shares = (head.double() - log_z).exp()
        if shares.sum() < self.top_p:
            head, order = ranked(row, row > -torch.inf)
            shares = (head.double() - log_z).exp()
        before = shares.cumsum(0)[:-1]
        kept = 1 + int((before < self.top_p - _TIE * shares[1:]).sum())
        out = torch.full_like(scores, -torch.inf)
        out[0, order[:kept]] = head[:kept]
        return out


def ranked(row: torch.Tensor, among: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The candidates of `row` (vocabulary,) where `among` is true, in falling order, ties by id.

    Returns their values and ids.
    """
    ids = among.nonzero()[:, 0]
    values, by_value = row[ids].sort(descending=True, stable=True)
    return values, ids[by_value]


def highest(row: torch.Tensor, count: int) -> torch.Tensor:
    """Ids of the `count` highest of `row` in falling order, ties by id."""
    values, order = torch.topk(row, min(count + 1, len(row)))
    if len(order) > count:
        edge, order = values[count - 1], order[:count]
        if values[count] == edge:  # topk takes any of those that tie at its edge
            above = (row > edge).nonzero()[:, 0]
            order = torch.cat([above, (row == edge).nonzero()[: count - len(above), 0]])
    order = order.sort().values
    return order[row[order].sort(descending=True, stable=True).indices]


def log_sum(row: torch.Tensor) -> torch.Tensor:
    """The logarithm of the sum of exponentials of `row`, in fp64 throughout (0-dim)."""
    return row.double().logsumexp(0)
