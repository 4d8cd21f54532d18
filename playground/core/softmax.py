"""From scores to per cent, column by column, for the most probable candidates of one step.

A step's record carries each candidate's log-probability and the logsumexp of all logits, so its logit is the
sum of the two. Divided by the temperature and exponentiated it is a weight; its share of the weights of the
whole vocabulary is what the candidate was drawn with, where no filter acted. Weights are counted from the
best candidate's, which is 1: any common factor cancels. Knows records only.
"""

import math
from dataclasses import dataclass

from playground.core.events import Stepped
from playground.core.tokens import Token


@dataclass(frozen=True, slots=True)
class SoftmaxRow:
    """One candidate: its logit, the logit over the temperature, e to that, and the recorded probability.

    `scaled` and `weight` are None at temperature 0, where nothing is divided: the best one is taken. `logit` and
    `scaled` are None where a server told no logits.
    """

    token: Token
    logit: float | None
    scaled: float | None
    weight: float | None
    probability: float


@dataclass(frozen=True, slots=True)
class SoftmaxTable:
    """The rows at one temperature, most probable first.

    `weights_total` is the sum of the weights of the whole vocabulary: what the best one's weight, which is
    1, has to be divided by to give its probability. None at temperature 0.
    """

    temperature: float
    rows: tuple[SoftmaxRow, ...]
    weights_total: float | None


def softmax_table(step: Stepped, temperature: float, limit: int = 6) -> SoftmaxTable:
    """The first `limit` candidates of a step that was drawn at `temperature` without a filter."""
    found = sorted(step.candidates, key=lambda c: (-c.raw_logprob, c.token.id))[:limit]
    best = found[0].raw_logprob if found else 0.0
    rows = []
    for candidate in found:
        logit = None if step.logsumexp is None else candidate.raw_logprob + step.logsumexp
        scaled = logit / temperature if temperature and logit is not None else None
        weight = math.exp((candidate.raw_logprob - best) / temperature) if temperature else None
        rows.append(SoftmaxRow(candidate.token, logit, scaled, weight, candidate.processed_probability))
    total = 1 / rows[0].probability if rows and temperature and rows[0].probability > 0 else None
    return SoftmaxTable(temperature, tuple(rows), total)
