"""Choosing the next token of one lane, and the record of how it was chosen.

Everything recorded is computed on the device and copied to the host at once, as one fp64 vector a
lane; the draw itself asks the device for a few numbers more. Knows no model, no cache and no text.

The draw walks the cumulative processed distribution in this order: the head by probability, ties by
id, then the rest by id. The head is every candidate where there are few, else those near the best; so
no full sort is needed, and the order is the same on every device.
"""

import math
from dataclasses import dataclass
from itertools import islice

import torch

from playground.core.events import StageRecord
from playground.engine.pipeline import NEAR, SamplingStage, highest, log_sum, ranked, walk

FEW = 1024
"""Up to so many candidates are all ranked before a draw."""


class BrokenLogits(RuntimeError):
    """A model gave NaN or infinity, or no candidate at all."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The recorded alternatives of a step, parallel lists."""

    ids: list[int]
    raw_logprobs: list[float]
    processed_probabilities: list[float]
    removed_by: list[str | None]


@dataclass(frozen=True, slots=True)
class Choice:
    """One chosen token on the host, with everything a step record needs of the distributions."""

    id: int
    raw_rank: int
    raw_logprob: float
    processed_probability: float
    logsumexp: float
    raw_entropy_bits: float
    processed_entropy_bits: float
    kept_count: int
    kept_mass: float
    stages: tuple[StageRecord, ...]
    candidates: Candidates


@dataclass(frozen=True, slots=True)
class Survivors:
    """Scores after every stage, and the distribution they make.

    `head` are the ranked scores and `order` their ids; `log_z` is the fp64 logarithm of the sum of
    exponentials; `beyond` is false where the head holds every candidate.
    """

    scores: torch.Tensor
    head: torch.Tensor
    order: torch.Tensor
    log_z: torch.Tensor
    beyond: bool


def survive(scores: torch.Tensor) -> Survivors:
    """The distribution of processed `scores` (vocabulary,)."""
    kept = scores > -torch.inf
    beyond = int(kept.sum()) > FEW
    head, order = ranked(scores, scores > scores.max() - NEAR if beyond else kept)
    return Survivors(scores, head, order, log_sum(scores if beyond else head), beyond)


def pick(survivors: Survivors, draw: float) -> torch.Tensor:
    """Inverse CDF in fp64: the id (0-dim tensor) on which `draw` in [0, 1) lands."""
    mass = (survivors.head.double() - survivors.log_z).exp().cumsum(0)
    if not survivors.beyond or draw < mass[-1]:
        place = int(torch.searchsorted(mass, draw, right=True))
        return survivors.order[min(place, len(mass) - 1)]
    rest = (survivors.scores.double() - survivors.log_z).exp()
    rest[survivors.order] = 0
    beyond = rest.nonzero()
    if not len(beyond):  # what lies beyond the head is too small for fp64
        return survivors.order[-1]
    cumulative = mass[-1] + rest.cumsum(0)
    last_kept = int(beyond[-1])
    return torch.searchsorted(cumulative, cumulative.new_tensor(draw), right=True).clamp(max=last_kept)


def choose(
    raw: torch.Tensor,
    ids: torch.Tensor,
    stages: tuple[SamplingStage, ...],
    draw: float | None,
    top_n: int,
) -> tuple[Choice, torch.Tensor]:
    """Choose from `raw` logits (vocabulary,) in fp32, after `ids` (positions,).

    `draw` None takes the most probable token. Returns the choice and the processed scores
    (vocabulary,), removed candidates at -inf.
    """
    trail = _Trail(raw, top_n)
    if not trail.logsumexp.isfinite():
        raise BrokenLogits("its logits are not numbers")
    scores = raw
    for stage, scores in walk(raw, ids, stages):
        trail.note(stage.name, scores, stage.filters)
    if draw is None:
        chosen = scores.argmax()
        survivors = only(scores, chosen)
        trail.note_greedy(chosen)
    else:
        survivors = survive(scores)
        chosen = pick(survivors, draw)
    return _choice(_to_host(_parts(trail, survivors, chosen)), trail.names), survivors.scores


class _Trail:
    """What each stage left: count, mass, and which of the top candidates were still alive."""

    def __init__(self, raw: torch.Tensor, top_n: int) -> None:
        self.raw = raw
        self.logsumexp = raw.logsumexp(0)
        self.probabilities = (raw - self.logsumexp).exp()
        self.top = highest(raw, top_n) if top_n else raw.new_empty(0, dtype=torch.long)
        self.names: list[str] = []
        self.numbers: list[torch.Tensor] = []
        self.alive: list[torch.Tensor] = []
        self._weights = self.probabilities
        self._reshaped: torch.Tensor | None = None
        self._before = self._mass = torch.ones_like(self.logsumexp)

    def entropy(self) -> torch.Tensor:
        """Of the raw distribution, in nats (0-dim)."""
        mean = self.probabilities.dot(self.raw)
        if mean.isnan():  # a candidate at -inf
            mean = self.probabilities.dot(self.raw.clamp_min(-1e9))
        return self.logsumexp - mean

    def note(self, name: str, scores: torch.Tensor, filters: bool) -> None:
        """Record `scores` as they left the stage; reshaping stages set what mass is measured under."""
        kept = scores > -torch.inf
        if not filters:
            self._reshaped = scores
            self._add(name, kept.sum(), self._mass, kept[self.top])
            return
        if self._reshaped is not None:
            self._weights, self._reshaped = self._reshaped.softmax(0), None
            self._before = self._mass
        self._mass = self._before * self._weights.dot(kept.to(self._weights.dtype)).clamp(max=1)
        self._add(name, kept.sum(), self._mass, kept[self.top])

    def note_greedy(self, chosen: torch.Tensor) -> None:
        """Record that one candidate was taken; its mass is under the raw distribution."""
        self._add("greedy", torch.ones_like(chosen), self.probabilities[chosen], self.top == chosen)

    def _add(self, name: str, count: torch.Tensor, mass: torch.Tensor, alive: torch.Tensor) -> None:
        self.names.append(name)
        self.numbers += [count.double(), mass.double()]
        self.alive.append(alive)


def only(scores: torch.Tensor, chosen: torch.Tensor) -> Survivors:
    """What greedy leaves of `scores` (vocabulary,): the chosen candidate alone."""
    out = torch.full_like(scores, -torch.inf)
    out[chosen] = scores[chosen]
    return Survivors(out, out[chosen][None], chosen[None], out[chosen].double(), beyond=False)


def _parts(trail: _Trail, survivors: Survivors, chosen: torch.Tensor) -> dict[str, torch.Tensor]:
    """Everything recorded, as one-dimensional tensors on the device; row 0 is the chosen token."""
    raw, logsumexp = trail.raw, trail.logsumexp
    live = survivors.scores if survivors.beyond else survivors.head
    processed = (live.double() - survivors.log_z).exp()
    rows = torch.cat([chosen[None], trail.top])
    scalars = {
        "rank": _rank(trail, chosen),
        "logsumexp": logsumexp,
        "raw_entropy": trail.entropy() / math.log(2),
        "processed_entropy": -torch.xlogy(processed, processed).sum() / math.log(2),
        "possible": logsumexp if trail.names else (raw > -torch.inf).sum(),
    }
    return {name: scalar[None] for name, scalar in scalars.items()} | {
        "stages": torch.stack(trail.numbers) if trail.numbers else raw.new_empty(0),
        "alive": torch.cat(trail.alive) if trail.alive else raw.new_empty(0),
        "ids": rows,
        "raw_logprobs": raw[rows] - logsumexp,
        "processed": (survivors.scores[rows].double() - survivors.log_z).exp(),
    }


def _rank(trail: _Trail, chosen: torch.Tensor) -> torch.Tensor:
    """1 for the most probable, ties by id; read off the top where the chosen one is among it."""
    place = (trail.top == chosen).nonzero()
    if len(place):
        return place[0, 0] + 1
    raw = trail.raw
    return (raw > raw[chosen]).sum() + (raw[:chosen] == raw[chosen]).sum() + 1


def _to_host(parts: dict[str, torch.Tensor]) -> dict[str, list[float]]:
    """All parts in one copy; fp64 holds ids, counts and fp32 numbers exactly."""
    values = iter(torch.cat([part.double() for part in parts.values()]).tolist())
    return {name: list(islice(values, len(part))) for name, part in parts.items()}


def _choice(host: dict[str, list[float]], names: list[str]) -> Choice:
    stages = tuple(
        StageRecord(name, int(kept), _short(mass))
        for name, kept, mass in zip(names, host["stages"][::2], host["stages"][1::2], strict=True)
    )
    return Choice(
        id=int(host["ids"][0]),
        raw_rank=int(host["rank"][0]),
        raw_logprob=_short(min(0.0, host["raw_logprobs"][0])),
        processed_probability=_short(host["processed"][0]),
        logsumexp=_short(host["logsumexp"][0]),
        raw_entropy_bits=_short(max(0.0, host["raw_entropy"][0])),
        processed_entropy_bits=_short(max(0.0, host["processed_entropy"][0])),
        kept_count=stages[-1].kept_count if stages else int(host["possible"][0]),
        kept_mass=stages[-1].kept_mass if stages else 1.0,
        stages=stages,
        candidates=_candidates(host, names),
    )


def _candidates(host: dict[str, list[float]], names: list[str]) -> Candidates:
    """The top candidates that are possible at all, and the chosen one where it is not among them."""
    ids, logprobs, alive = host["ids"], host["raw_logprobs"], host["alive"]
    shown = [i for i in range(1, len(ids)) if math.isfinite(logprobs[i])]
    if ids[0] not in ids[1:]:
        shown.append(0)
    removed: list[str | None] = [None] * len(ids)
    for i in range(1, len(ids)):
        at_each_stage = alive[i - 1 :: len(ids) - 1]
        removed[i] = next((name for name, kept in zip(names, at_each_stage, strict=True) if not kept), None)
    return Candidates(
        [int(ids[i]) for i in shown],
        [_short(min(0.0, logprobs[i])) for i in shown],
        [_short(host["processed"][i]) for i in shown],
        [removed[i] for i in shown],
    )


def _short(value: float) -> float:
    """Nine significant digits: more than fp32 holds, and half the length in a trace."""
    return float(f"{value:.9g}")
