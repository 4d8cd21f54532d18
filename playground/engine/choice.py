"""Choosing the next token of each lane, and the record of how it was chosen.

What is recorded is computed on the device and copied to the host twice a step: all lanes' raw rows
before any stage, then what their stages and draws made of them. Between two forwards every operation
finds its code and data out of the processor's caches, so what counts here is how few they are; sums
over a few candidates are done on the host. Knows no model, no cache and no text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from playground.core.events import StageRecord
from playground.engine.draw import Survivors, pick, survive
from playground.engine.pipeline import SamplingStage, walk
from playground.engine.raw import RawRow

_NAT_BITS = math.log(2)


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


@dataclass(slots=True)
class Chosen:
    """A choice before it is read: its trail, the distribution it came from, and the id on the device.

    Greedy draws from no distribution. A `forced` id stands in the place of the one that was chosen.
    """

    trail: "_Trail"
    scores: torch.Tensor
    id: torch.Tensor
    survivors: Survivors | None
    forced: int | None = None

    def processed(self) -> torch.Tensor:
        """The scores (vocabulary,) after every stage, removed candidates at -inf."""
        return self.scores if self.survivors is not None else only(self.scores, self.id)


def choose(
    raw: RawRow,
    ids: torch.Tensor,
    stages: tuple[SamplingStage, ...],
    draw: float | None,
    forced: int | None = None,
) -> Chosen:
    """Choose after `ids` (positions,); `draw` None takes the most probable token.

    An id that is `forced` is recorded as the settings see it, however improbable they make it.
    """
    trail = _Trail(raw, forced)
    scores = raw.logits
    for stage, scores in walk(raw.logits, ids, stages):
        trail.note(stage.name, scores, stage.filters)
    if draw is None:
        return Chosen(trail, scores, scores.argmax() if stages else raw.top[0], None, forced)
    survivors = survive(scores, trail.count, trail.kept)
    return Chosen(trail, scores, pick(survivors, draw), survivors, forced)


class _Trail:
    """What each stage left: how many candidates, their mass, and the scores of the top ones."""

    def __init__(self, raw: RawRow, forced: int | None = None) -> None:
        self.raw = raw
        self.watched = raw.top if forced is None else torch.cat([raw.top, raw.top.new_tensor([forced])])
        self.names: list[str] = []
        self.counts: list[int] = []
        self.masses: list[torch.Tensor | None] = []
        self.tops: list[torch.Tensor | None] = []
        self.kept: torch.Tensor | None = None
        self._weights = raw.probabilities
        self._reshaped: torch.Tensor | None = None
        self._before: torch.Tensor | None = None
        self._mass: torch.Tensor | None = None

    @property
    def count(self) -> int:
        """Candidates that are left."""
        return self.counts[-1] if self.counts else self.raw.possible

    def note(self, name: str, scores: torch.Tensor, filters: bool) -> None:
        """Record `scores` as they left the stage. One that reshapes removes nothing, and sets the
        distribution under which the mass of the filters after it is measured."""
        if not filters:
            self._reshaped = scores
            self._add(name, self.count, None)
            return
        if self._reshaped is not None:
            self._weights, self._reshaped = self._reshaped.softmax(0), None
            self._before = self._mass
        self.kept = (scores > -torch.inf).nonzero()[:, 0]
        share = self._weights[self.kept].sum()
        self._mass = share if self._before is None else self._before * share
        self._add(name, len(self.kept), scores[self.watched])

    def _add(self, name: str, count: int, top: torch.Tensor | None) -> None:
        self.names.append(name)
        self.counts.append(count)
        self.masses.append(self._mass)
        self.tops.append(top)


def only(scores: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """What greedy leaves of `scores` (vocabulary,): the chosen candidate alone."""
    out = torch.full_like(scores, -torch.inf)
    out[chosen] = scores[chosen]
    return out


def read(chosen: Sequence[Chosen]) -> list[Choice]:
    """All lanes' choices on the host, in one copy."""
    parts = [_parts(one) for one in chosen]
    values = iter(
        torch.cat([part for lane in parts for part in lane.values()]).tolist() if any(parts) else ()
    )
    host = [{name: list(islice(values, len(part))) for name, part in lane.items()} for lane in parts]
    return [_choice(one, numbers) for one, numbers in zip(chosen, host, strict=True)]


def _parts(chosen: Chosen) -> dict[str, torch.Tensor]:
    """What is not on the host yet, one-dimensional. Joined they are fp32 at least, exact for ids up to 2^24."""
    raw, trail, survivors = chosen.trail.raw, chosen.trail, chosen.survivors
    if survivors is None and not trail.names and chosen.forced is None:
        return {}
    id = chosen.id[None]
    parts = {"id": id, "logit": raw.logits[id]}
    if chosen.forced is not None:
        parts |= {
            "forced": raw.logits[chosen.forced][None],
            "forced score": chosen.scores[chosen.forced][None],
        }
    parts |= {f"mass {i}": mass[None] for i, mass in enumerate(trail.masses) if mass is not None}
    parts |= {f"top {i}": top for i, top in enumerate(trail.tops) if top is not None}
    if survivors is not None:
        parts |= {"score": chosen.scores[id], "best": survivors.best[None], "log_z": survivors.log_z[None]}
        parts["entropy"] = survivors.entropy()[None]
        if not trail.tops or trail.tops[-1] is None:
            parts["top"] = chosen.scores[trail.watched]
    return parts


def _choice(chosen: Chosen, host: dict[str, list[float]]) -> Choice:
    """The record; what greedy took, or the draw would have, stays known beside a forced id."""
    trail, raw = chosen.trail, chosen.trail.raw
    taken, logit = (int(host["id"][0]), host["logit"][0]) if host else (raw.ids[0], raw.top_logits[0])
    id, greedy = chosen.forced, chosen.survivors is None
    stages = _stages(trail, host)
    if greedy:
        stages = (*stages, StageRecord("greedy", 1, _short(math.exp(_logprob(raw, logit)))))
    if id is None:
        id, processed = taken, 1.0 if greedy else _processed(host, host["score"][0])
    else:
        logit = host["forced"][0]
        processed = float(id == taken) if greedy else _processed(host, host["forced score"][0])
    logprob = _logprob(raw, logit)
    return Choice(
        id=id,
        raw_rank=_rank(raw, id),
        raw_logprob=logprob,
        processed_probability=processed,
        logsumexp=_short(raw.logsumexp),
        raw_entropy_bits=_short(raw.entropy / _NAT_BITS),
        processed_entropy_bits=0.0 if greedy else _short(max(0.0, host["entropy"][0] / _NAT_BITS)),
        kept_count=1 if greedy else trail.count,
        kept_mass=stages[-1].kept_mass if stages else 1.0,
        stages=stages,
        candidates=_candidates(chosen, host, taken, (id, logprob, processed)),
    )


def _stages(trail: _Trail, host: dict[str, list[float]]) -> tuple[StageRecord, ...]:
    masses = [host[f"mass {i}"][0] if mass is not None else 1.0 for i, mass in enumerate(trail.masses)]
    return tuple(
        StageRecord(name, count, _short(min(1.0, mass)))
        for name, count, mass in zip(trail.names, trail.counts, masses, strict=True)
    )


def _candidates(
    chosen: Chosen, host: dict[str, list[float]], taken: int, own: tuple[int, float, float]
) -> Candidates:
    """The top candidates that are possible at all, and the recorded one where it is not among them.

    `taken` is what the settings chose; `own` the id, raw log-probability and processed probability on record.
    """
    raw, removed_by = chosen.trail.raw, _removed_by(chosen, host, taken)
    shown = [i for i in range(min(raw.shown, len(raw.ids))) if raw.top_logits[i] > -math.inf]
    ids = [raw.ids[i] for i in shown]
    if chosen.survivors is None:
        processed = [float(other == taken) for other in ids]
    else:
        scores = host["top"] if "top" in host else host[f"top {len(chosen.trail.tops) - 1}"]
        processed = [_processed(host, scores[i]) for i in shown]
    found = Candidates(
        ids, [_logprob(raw, raw.top_logits[i]) for i in shown], processed, [removed_by[i] for i in shown]
    )
    if own[0] not in ids:
        found.ids.append(own[0])
        found.raw_logprobs.append(own[1])
        found.processed_probabilities.append(own[2])
        found.removed_by.append(removed_by[-1] if chosen.forced is not None else None)
    return found


def _removed_by(chosen: Chosen, host: dict[str, list[float]], taken: int) -> list[str | None]:
    """For each of the top, and the forced one behind them, the first stage after which it was gone."""
    raw, trail = chosen.trail.raw, chosen.trail
    left: str | None = "greedy" if chosen.survivors is None else None
    watched = raw.ids if chosen.forced is None else [*raw.ids, chosen.forced]
    removed = [None if other == taken else left for other in watched]
    for i in reversed(range(len(trail.names))):
        if trail.tops[i] is not None:
            for place, score in enumerate(host[f"top {i}"]):
                if score == -math.inf:
                    removed[place] = trail.names[i]
    return removed


def _rank(raw: RawRow, id: int) -> int:
    """1 for the most probable, ties by id; read off the top where the chosen one is among it."""
    if id in raw.ids:
        return raw.ids.index(id) + 1
    logits = raw.logits
    above, tied_before = logits > logits[id], logits[:id] == logits[id]
    return int(above.sum() + tied_before.sum()) + 1


def _logprob(raw: RawRow, logit: float) -> float:
    return _short(min(0.0, logit - raw.top_logits[0] + raw.best_logprob))


def _processed(host: dict[str, list[float]], score: float) -> float:
    return _short(math.exp(score - host["best"][0] - host["log_z"][0]))


def _short(value: float) -> float:
    """Nine significant digits: more than fp32 holds, and half the length in a trace."""
    return float(f"{value:.9g}")
