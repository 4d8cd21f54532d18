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

HEAD = 1024
"""Candidates that are ranked at a step; whatever lies beyond is taken in the order of ids."""

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
    over the ranked head, which nearly always holds the nucleus; the whole vocabulary is sorted only
    where it does not.
    """

    def __init__(self, top_p: float) -> None:
        self.top_p = top_p

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores (1, vocabulary) with everything outside the nucleus at -inf."""
        row = scores[0]
        log_z = row.double().logsumexp(0)
        head, order = ranked(row, HEAD)
        shares = (head.double() - log_z).exp()
        if len(head) < len(row) and shares.sum() < self.top_p:
            head, order = ranked(row, len(row))
            shares = (head.double() - log_z).exp()
        before = shares.cumsum(0)[:-1]
        kept = 1 + int((before < self.top_p - _TIE * shares[1:]).sum())
        out = torch.full_like(scores, -torch.inf)
        out[0, order[:kept]] = head[:kept]
        return out


def ranked(row: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The `count` highest of `row` (vocabulary,) in falling order, ties by id: values and ids."""
    highest, order = torch.topk(row, min(count, len(row)))
    edge = highest[-1]
    if len(order) < len(row) and edge > -torch.inf and int((row >= edge).sum()) > len(order):
        above = (row > edge).nonzero()[:, 0]  # topk takes any of those that tie at its edge
        order = torch.cat([above, (row == edge).nonzero()[: len(order) - len(above), 0]])
    order, _ = order.sort()
    values, by_value = row[order].sort(descending=True, stable=True)
    return values, order[by_value]
