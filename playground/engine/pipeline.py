"""Sampling as a list of named stages, in the order that the settings name.

Each stage takes ids (1, positions) and scores (1, vocabulary) and returns scores of the same shape,
a removed candidate at -inf. They are transformers' own processors, except where those sort the whole
vocabulary. The same list draws the token and is looked into for the record: there is no second
implementation for the chart. Knows no model and no draw.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
)  # fmt: skip

from playground.core.decoding import Decoding
from playground.core.stages import RESHAPING, Stage
from playground.engine.filters import TopP, TypicalP

NEAR = 10.0
"""Candidates within this many logits of the best are ranked; those below have e^-10 of its weight."""

_COLDEST = 1e-30
"""Lower temperatures overflow fp32; here any two scores that differ are infinitely far apart already."""

_BLOCK = 64

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
            float(decoding.repetition_penalty),
            prompt_ignore_length=prompt_tokens if decoding.penalty_scope == "output" else None,
        ),
        "bias": lambda: SequenceBiasLogitsProcessor({(id,): float(by) for id, by in decoding.bias}),
        "ban": lambda: SuppressTokensLogitsProcessor(list(decoding.banned)),
        "temperature": lambda: TemperatureLogitsWarper(max(float(decoding.temperature), _COLDEST)),
        "top_k": lambda: TopKLogitsWarper(decoding.top_k),
        "top_p": lambda: TopP(decoding.top_p),
        "min_p": lambda: MinPLogitsWarper(decoding.min_p),
        "typical_p": lambda: TypicalP(decoding.typical_p),
    }
    return tuple(
        SamplingStage(name, makers[name](), name not in RESHAPING) for name in decoding.active_stages()
    )


def walk(
    raw: torch.Tensor, ids: torch.Tensor, stages: Iterable[SamplingStage]
) -> Iterator[tuple[SamplingStage, torch.Tensor]]:
    """Each stage with the scores (vocabulary,) that it leaves of `raw` logits, after `ids` (positions,)."""
    scores = raw[None]
    for stage in stages:
        scores = stage.apply(ids[None], scores)
        yield stage, scores[0]


def ranked(row: torch.Tensor, among: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The candidates of `row` (vocabulary,) where `among` is true, in falling order, ties by id.

    Returns their values and ids.
    """
    return ordered(row, among.nonzero()[:, 0])


def ordered(row: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As `ranked`, of the candidates `ids`, given in rising order."""
    values, by_value = row[ids].sort(descending=True, stable=True)
    return values, ids[by_value]


def highest(rows: torch.Tensor, count: int) -> torch.Tensor:
    """Ids of the `count` highest in each of `rows` (rows, vocabulary), in falling order, ties by id."""
    values, order = _largest(rows, min(count + 1, rows.shape[1]))
    if not (values[:, 1:] == values[:, :-1]).any():
        return order[:, :count]
    if order.shape[1] > count:
        tied = values[:, count] == values[:, count - 1]
        order = order[:, :count].contiguous()
        for row in tied.nonzero()[:, 0].tolist():  # any of those that tie at the edge may have been taken
            order[row] = _with_lowest_ids(rows[row], values[row, count - 1], count)
    order = order.sort(dim=1).values
    return order.gather(1, rows.gather(1, order).sort(dim=1, descending=True, stable=True).indices)


def _largest(rows: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """As `torch.topk`, in a third of its time: the largest lie in the blocks with the largest maxima."""
    blocks = rows.shape[1] // _BLOCK
    if blocks <= count:
        return rows.topk(count)
    body = rows[:, : blocks * _BLOCK].view(len(rows), blocks, _BLOCK)
    promising = body.amax(2).topk(count).indices
    ids = (promising[:, :, None] * _BLOCK + torch.arange(_BLOCK, device=rows.device)).flatten(1)
    if rows.shape[1] % _BLOCK:
        tail = torch.arange(blocks * _BLOCK, rows.shape[1], device=rows.device)
        ids = torch.cat([ids, tail.expand(len(rows), -1)], dim=1)
    values, places = rows.gather(1, ids).topk(count)
    return values, ids.gather(1, places)


def _with_lowest_ids(row: torch.Tensor, edge: torch.Tensor, count: int) -> torch.Tensor:
    above = (row > edge).nonzero()[:, 0]
    return torch.cat([above, (row == edge).nonzero()[: count - len(above), 0]])


def log_sum(row: torch.Tensor) -> torch.Tensor:
    """The logarithm of the sum of exponentials of `row`, in fp64 throughout (0-dim)."""
    return row.double().logsumexp(0)
