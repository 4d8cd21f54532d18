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

_NAT_BITS = math.log(2)

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


def survive(scores: torch.Tensor, count: int | None = None) -> Survivors:
    """The distribution of processed `scores` (vocabulary,), of which `count` are possible, where known."""
    kept = scores > -torch.inf
    beyond = (int(kept.sum()) if count is None else count) > FEW
    head, order = ranked(scores, scores >= scores.max() - NEAR if beyond else kept)
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


@dataclass(frozen=True, slots=True)
class RawRow:
    """One lane's logits (vocabulary,) in fp32 and what is recorded of them before any stage.

    `logprobs` and `probabilities` are (vocabulary,), `top` the ids of the highest in falling order,
    `possible` how many are not at -inf.
    """

    logits: torch.Tensor
    logprobs: torch.Tensor
    probabilities: torch.Tensor
    top: torch.Tensor
    possible: int


def raw_rows(logits: torch.Tensor, top_n: int) -> list[RawRow]:
    """All lanes' rows of `logits` (lanes, vocabulary), looked at together; raises `BrokenLogits`.

    Between two forwards every operation finds its code and data out of the processor's caches, so what
    counts here is how few they are.
    """
    low, high = (float(edge) for edge in torch.aminmax(logits))
    if not math.isfinite(high):
        raise BrokenLogits("its logits are not numbers")
    possible = [logits.shape[1]] * len(logits)
    if low == -math.inf:
        possible = (logits > -torch.inf).sum(1).tolist()
        if not all(possible):
            raise BrokenLogits("it leaves no candidate")
    logprobs = logits.log_softmax(1)
    top = highest(logits, top_n) if top_n else logits.new_empty((len(logits), 0), dtype=torch.long)
    return [RawRow(*parts) for parts in zip(logits, logprobs, logprobs.exp(), top, possible, strict=True)]


def choose(
    raw: RawRow, ids: torch.Tensor, stages: tuple[SamplingStage, ...], draw: float | None
) -> tuple[Choice, torch.Tensor]:
    """Choose after `ids` (positions,).

    `draw` None takes the most probable token. Returns the choice and the processed scores
    (vocabulary,), removed candidates at -inf.
    """
    trail = _Trail(raw)
    scores = raw.logits
    for stage, scores in walk(raw.logits, ids, stages):
        trail.note(stage.name, scores, stage.filters)
    if draw is None:
        chosen = scores.argmax() if stages or not len(raw.top) else raw.top[0]
        survivors = only(scores, chosen)
        trail.note_greedy(chosen)
    else:
        survivors = survive(scores, trail.count)
        chosen = pick(survivors, draw)
    return _choice(_to_host(_parts(trail, survivors, chosen)), trail), survivors.scores


class _Trail:
    """What each stage left: count, mass, and which of the top candidates were still alive."""

    def __init__(self, raw: RawRow) -> None:
        self.raw = raw
        self.names: list[str] = []
        self.counts: list[int] = []
        self.masses: list[torch.Tensor] = []
        self.alive: list[torch.Tensor] = []
        self._weights = raw.probabilities
        self._reshaped: torch.Tensor | None = None
        self._before = self._mass = raw.logits.new_ones(())
        self._alive = raw.logits[raw.top] > -torch.inf

    @property
    def count(self) -> int:
        """Candidates that are left."""
        return self.counts[-1] if self.counts else self.raw.possible

    def entropy(self) -> torch.Tensor:
        """Of the raw distribution, in nats (0-dim)."""
        logprobs = self.raw.logprobs
        if self.raw.possible < len(logprobs):  # a candidate at -inf
            logprobs = logprobs.clamp_min(-1e9)
        return -self.raw.probabilities.dot(logprobs)

    def note(self, name: str, scores: torch.Tensor, filters: bool) -> None:
        """Record `scores` as they left the stage. One that reshapes removes nothing, and sets the
        distribution under which the mass of the filters after it is measured."""
        if not filters:
            self._reshaped = scores
            self._add(name, self.count)
            return
        if self._reshaped is not None:
            self._weights, self._reshaped = self._reshaped.softmax(0), None
            self._before = self._mass
        kept = scores > -torch.inf
        self._mass = self._before * self._weights.dot(kept.to(self._weights.dtype)).clamp(max=1)
        self._alive = kept[self.raw.top]
        self._add(name, int(kept.sum()))

    def note_greedy(self, chosen: torch.Tensor) -> None:
        """Record that one candidate was taken; its mass is under the raw distribution."""
        self._mass, self._alive = self.raw.probabilities[chosen], self.raw.top == chosen
        self._add("greedy", 1)

    def _add(self, name: str, count: int) -> None:
        self.names.append(name)
        self.counts.append(count)
        self.masses.append(self._mass)
        self.alive.append(self._alive)


def only(scores: torch.Tensor, chosen: torch.Tensor) -> Survivors:
    """What greedy leaves of `scores` (vocabulary,): the chosen candidate alone."""
    out = torch.full_like(scores, -torch.inf)
    out[chosen] = scores[chosen]
    return Survivors(out, out[chosen][None], chosen[None], out[chosen].double(), beyond=False)


def _parts(trail: _Trail, survivors: Survivors, chosen: torch.Tensor) -> dict[str, torch.Tensor]:
    """Everything recorded, as one-dimensional tensors on the device; row 0 is the chosen token."""
    raw = trail.raw
    live = survivors.scores if survivors.beyond else survivors.head
    processed = (live.double() - survivors.log_z).exp()
    rows = torch.cat([chosen[None], raw.top])
    return {
        "raw_entropy": trail.entropy()[None],
        "processed_entropy": -torch.xlogy(processed, processed).sum(0, keepdim=True),
        "ids": rows,
        "raw_logits": raw.logits[rows],
        "raw_logprobs": raw.logprobs[rows],
        "processed": (survivors.scores[rows].double() - survivors.log_z).exp(),
        **{f"mass {i}": mass[None] for i, mass in enumerate(trail.masses)},
        **{f"alive {i}": alive for i, alive in enumerate(trail.alive)},
    }


def _rank(raw: RawRow, host: dict[str, list[float]]) -> int:
    """1 for the most probable, ties by id; read off the top where the chosen one is among it."""
    chosen, *top = host["ids"]
    if chosen in top:
        return top.index(chosen) + 1
    logits, place = raw.logits, int(chosen)
    above, tied_before = logits > logits[place], logits[:place] == logits[place]
    return int(above.sum() + tied_before.sum()) + 1


def _to_host(parts: dict[str, torch.Tensor]) -> dict[str, list[float]]:
    """All parts in one copy; joined they are fp64, which holds ids and fp32 numbers exactly."""
    values = iter(torch.cat(list(parts.values())).tolist())
    return {name: list(islice(values, len(part))) for name, part in parts.items()}


def _choice(host: dict[str, list[float]], trail: _Trail) -> Choice:
    stages = tuple(
        StageRecord(name, count, _short(host[f"mass {i}"][0]))
        for i, (name, count) in enumerate(zip(trail.names, trail.counts, strict=True))
    )
    return Choice(
        id=int(host["ids"][0]),
        raw_rank=_rank(trail.raw, host),
        raw_logprob=_short(min(0.0, host["raw_logprobs"][0])),
        processed_probability=_short(host["processed"][0]),
        logsumexp=_short(host["raw_logits"][0] - host["raw_logprobs"][0]),
        raw_entropy_bits=_short(max(0.0, host["raw_entropy"][0] / _NAT_BITS)),
        processed_entropy_bits=_short(max(0.0, host["processed_entropy"][0] / _NAT_BITS)),
        kept_count=trail.count,
        kept_mass=stages[-1].kept_mass if stages else 1.0,
        stages=stages,
        candidates=_candidates(host, trail.names),
    )


def _candidates(host: dict[str, list[float]], names: list[str]) -> Candidates:
    """The top candidates that are possible at all, and the chosen one where it is not among them."""
    ids, logprobs = host["ids"], host["raw_logprobs"]
    alive = [host[f"alive {i}"] for i in range(len(names))]
    shown = [i for i in range(1, len(ids)) if math.isfinite(logprobs[i])]
    if ids[0] not in ids[1:]:
        shown.append(0)
    removed: list[str | None] = [None] * len(ids)
    for i in range(1, len(ids)):
        removed[i] = next((name for name, kept in zip(names, alive, strict=True) if not kept[i - 1]), None)
    return Candidates(
        [int(ids[i]) for i in shown],
        [_short(min(0.0, logprobs[i])) for i in shown],
        [_short(host["processed"][i]) for i in shown],
        [removed[i] for i in shown],
    )


def _short(value: float) -> float:
    """Nine significant digits: more than fp32 holds, and half the length in a trace."""
    return float(f"{value:.9g}")
