"""The distribution that every stage has left, and the draw from it.

The draw walks the cumulative processed distribution in this order: the head by probability, ties by
id, then the rest by id. The head is every candidate where there are few, else those near the best; so
no full sort is needed, and the order is the same on every device. Knows no stage and no record.
"""

from dataclasses import dataclass

import torch

from playground.engine.pipeline import NEAR, log_sum, ordered

FEW = 1024
"""Up to so many candidates are all ranked before a draw."""


@dataclass(frozen=True, slots=True)
class Survivors:
    """Scores after every stage, and the distribution they make.

    `order` are the ranked ids and `shares` their probabilities in fp64; `log_z` is the fp64 logarithm of
    the sum of exponentials relative to the `best` score; `beyond` is false where every candidate is ranked.
    """

    scores: torch.Tensor
    order: torch.Tensor
    shares: torch.Tensor
    best: torch.Tensor
    log_z: torch.Tensor
    beyond: bool

    def all_shares(self) -> torch.Tensor:
        """The whole distribution (vocabulary,) in fp64."""
        return (self.scores.double() - self.best - self.log_z).exp()

    def entropy(self) -> torch.Tensor:
        """In nats (0-dim)."""
        return torch.special.entr(self.all_shares() if self.beyond else self.shares).sum()


def survive(scores: torch.Tensor, count: int | None = None, kept: torch.Tensor | None = None) -> Survivors:
    """The distribution of processed `scores` (vocabulary,).

    Where they are known, `count` is how many candidates are possible and `kept` are their ids, rising.
    """
    if kept is None and (count is None or count <= FEW):
        kept = (scores > -torch.inf).nonzero()[:, 0]
    beyond = kept is None or len(kept) > FEW
    if kept is None or beyond:
        kept = (scores >= scores.max() - NEAR).nonzero()[:, 0]
    values, order = ordered(scores, kept)
    best = values[0].double()
    head = values.double() - best  # first, so that huge scores keep their differences
    log_z = log_sum(scores.double() - best if beyond else head)
    return Survivors(scores, order, (head - log_z).exp(), best, log_z, beyond)


def pick(survivors: Survivors, draw: float) -> torch.Tensor:
    """Inverse CDF in fp64: the id (0-dim tensor) on which `draw` in [0, 1) lands."""
    mass = survivors.shares.cumsum(0)
    if not survivors.beyond or draw < mass[-1]:
        place = int(torch.searchsorted(mass, draw, right=True))
        return survivors.order[min(place, len(mass) - 1)]
    rest = survivors.all_shares()
    rest[survivors.order] = 0
    beyond = rest.nonzero()
    if not len(beyond):  # what lies beyond the head is too small for fp64
        return survivors.order[-1]
    cumulative = mass[-1] + rest.cumsum(0)
    last_kept = int(beyond[-1])
    return torch.searchsorted(cumulative, cumulative.new_tensor(draw), right=True).clamp(max=last_kept)
