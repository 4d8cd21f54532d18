"""Top-p and typical-p without sorting the vocabulary: the masks are those of transformers' own warpers.

Both keep the fewest candidates, taken in some order, whose shares reach a goal. Only the last of them
is looked for, first among a few coarse classes, then exactly. Shares are fp64. Knows no settings.
"""

import torch

_CLASSES = 2048
_CLASSES_PER_NAT = 64.0

_TIE = 1e-6
"""A candidate is not needed where less than this share of its own mass, and of the goal, is missing."""

_FEW = 1024
"""Where no more candidates than these are large enough to matter, and they reach the goal, the rest is
not looked at: measured on rows of the default model, a quarter of the time."""

_SOMETHING = 1e-300
"""A goal of 0 asks for the first candidate that has any mass."""


class TopP:
    """Nucleus sampling (Holtzman et al. 2020, arXiv:1904.09751): the smallest set that reaches p.

    A candidate stays while the mass before it is below p, so at least one does. Of candidates with the
    same score the lowest ids stay.
    """

    def __init__(self, top_p: float) -> None:
        self.top_p = top_p

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores (1, vocabulary) with everything outside the nucleus at -inf."""
        row = scores[0]
        shares = row.softmax(0)
        goal = self.top_p * shares.sum(dtype=torch.float64)
        near = (shares >= (1 - self.top_p) / _FEW).nonzero()[:, 0]
        if len(near) <= _FEW and (kept := _nucleus(row, near, shares, goal)) is not None:
            return scores.new_full(scores.shape, -torch.inf).index_copy_(1, kept, scores[:, kept])
        last = last_needed(row.neg(), row.max() - row, shares.double(), goal)
        removed = row < row[last]
        removed[last + 1 :] |= row[last + 1 :] == row[last]
        return torch.where(removed, -torch.inf, scores)


def _nucleus(
    row: torch.Tensor, near: torch.Tensor, shares: torch.Tensor, goal: torch.Tensor
) -> torch.Tensor | None:
    """The nucleus where it lies among the few ids `near` the best, which is the usual case; else None."""
    order = near[row[near].sort(descending=True, stable=True).indices]
    own = shares[order].double()
    reached = own.cumsum(0)
    if not len(near) or reached[-1] < goal:
        return None
    return order[: _needed(own, goal - reached + own, goal.clamp_min(_SOMETHING))]


class TypicalP:
    """Locally typical sampling (Meister et al. 2023, arXiv:2202.00666).

    The candidates whose surprisal is closest to the entropy stay, until they reach p; all that are as
    close as the last of them stay too.
    """

    def __init__(self, typical_p: float) -> None:
        self.typical_p = typical_p

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores (1, vocabulary) with everything less typical at -inf."""
        off = scores[0].double().sub_(scores.max())
        weights = off.exp()
        total = weights.sum()
        mean = weights.dot(off)
        if mean.isnan():  # a candidate at -inf
            mean = weights.dot(off.clamp_min(-1e9))
        # -(off - log total) is the surprisal and log total - mean / total the entropy: the log cancels.
        distance = off.sub_(mean / total).abs_()
        last = last_needed(distance, distance.float(), weights, self.typical_p * total)
        return torch.where(distance > distance[last], -torch.inf, scores)


def last_needed(
    keys: torch.Tensor, rough: torch.Tensor, shares: torch.Tensor, goal: torch.Tensor
) -> torch.Tensor:
    """Where the last of the fewest candidates stands whose `shares` reach `goal` (0-dim).

    They are taken by rising key, ties by their place; at least one is. `rough` are the keys in fp32
    from about 0 on, in nats, never falling where the keys rise; it is used up.
    """
    goal = goal.clamp_min(_SOMETHING)
    classes = rough.mul_(_CLASSES_PER_NAT).clamp_(max=_CLASSES - 1).to(torch.int32)
    reached = torch.bincount(classes, weights=shares, minlength=_CLASSES).cumsum_(0)
    crossing = int((reached < goal).sum())
    if crossing == _CLASSES:  # rounding left the goal just out of reach
        crossing = int(classes.max())
    first = int((reached < reached[crossing - 1]).sum()) if crossing else 0  # a tie may end the class before
    inside = ((classes >= first) & (classes <= crossing)).nonzero()[:, 0]
    before = reached[first - 1] if first else torch.zeros_like(goal)
    return inside[_last_of(keys[inside], shares[inside], before, goal)]


def _last_of(
    keys: torch.Tensor, shares: torch.Tensor, before: torch.Tensor, goal: torch.Tensor
) -> torch.Tensor:
    order = keys.sort(stable=True).indices
    own = shares[order]
    return order[_needed(own, goal - (before + own.cumsum(0) - own), goal) - 1]


def _needed(own: torch.Tensor, missing: torch.Tensor, goal: torch.Tensor) -> int:
    """How many are needed, of candidates with their `own` shares where so much is `missing` before each."""
    return max(1, int((missing > _TIE * own.minimum(goal)).sum()))
