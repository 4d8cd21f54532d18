"""The filter waterfall of one step, computed on demand from its logits.

It walks the stages that draw and looks between them; a stage is called inert only where the walk
without it ends the same. Knows no model and no text.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from playground.core.decoding import Decoding, validated
from playground.core.waterfall import StageEffect, Waterfall, WaterfallRow
from playground.engine.choice import only
from playground.engine.pipeline import SamplingStage, build, highest, log_sum, ranked, walk
from playground.engine.raw import BrokenLogits

_SAME = 1e-9
"""Probabilities are the same within this: fp64 sums of fp32 scores."""

_GREEDY = "greedy"


@torch.inference_mode()
def waterfall(
    raw: torch.Tensor,
    ids: Sequence[int],
    decoding: Decoding,
    *,
    prompt_tokens: int | None = None,
    top_n: int = 20,
) -> Waterfall:
    """What each stage of `decoding` makes of `raw` logits (vocabulary,) after the tokens `ids`.

    `prompt_tokens` of `ids` are the prompt (None: all), which a penalty on the output leaves out.
    Rows are up to `top_n` candidates before and as many after the stages. Raises `InvalidSetting`,
    and `BrokenLogits` where there is nothing to choose from.
    """
    stages = build(validated(decoding), len(ids) if prompt_tokens is None else prompt_tokens)
    if not raw.logsumexp(0).isfinite():
        raise BrokenLogits("its logits are not numbers")
    chain = _Chain(raw.float(), torch.tensor(list(ids), dtype=torch.long, device=raw.device), decoding.greedy)
    seen = chain.run(stages)
    return Waterfall(
        possible_count=seen[0].count,
        penalty_scope=decoding.penalty_scope,
        stages=_effects(chain, stages, seen, decoding),
        rows=_rows(seen, _shown(seen, top_n)),
    )


@dataclass(frozen=True, slots=True)
class _Level:
    """Scores (vocabulary,) between two stages; `name` is the stage that left them."""

    name: str
    filters: bool
    scores: torch.Tensor
    kept: torch.Tensor
    count: int
    log_z: torch.Tensor

    def probabilities(self, places: torch.Tensor) -> torch.Tensor:
        return (self.scores[places].double() - self.log_z).exp()


@dataclass(frozen=True, slots=True)
class _Chain:
    """One step's logits and ids, ready to be sent through any stages."""

    raw: torch.Tensor
    ids: torch.Tensor
    greedy: bool

    def run(self, stages: Sequence[SamplingStage]) -> list[_Level]:
        """The raw level, then one for each stage, and greedy's where it decides."""
        levels = [_level("", False, self.raw)]
        levels += [_level(stage.name, stage.filters, out) for stage, out in walk(self.raw, self.ids, stages)]
        if self.greedy:
            scores = levels[-1].scores
            levels.append(_level(_GREEDY, True, only(scores, scores.argmax())))
        return levels


def _level(name: str, filters: bool, scores: torch.Tensor) -> _Level:
    kept = scores > -torch.inf
    return _Level(name, filters, scores, kept, int(kept.sum()), log_sum(scores))


def _effects(
    chain: _Chain, stages: tuple[SamplingStage, ...], seen: list[_Level], decoding: Decoding
) -> tuple[StageEffect, ...]:
    effects, mass = [], 1.0
    for before, after in pairwise(seen):
        share = _kept_share(before, after)
        mass *= share
        effects.append(
            StageEffect(
                name=after.name,
                setting=_setting(decoding, after.name),
                filters=after.filters,
                kept_count=after.count,
                removed_count=before.count - after.count,
                kept_share=share,
                kept_mass=mass,
                inert=_same(seen[-1], _without(chain, stages, after.name)),
            )
        )
    return tuple(effects)


def _setting(decoding: Decoding, name: str) -> float | None:
    """The number of a stage; None for those that have none: greedy, and what names single tokens."""
    value = getattr(decoding, name, None)
    return float(value) if isinstance(value, int | float) and name != _GREEDY else None


def _kept_share(before: _Level, after: _Level) -> float:
    """The share of the input's probability that is left, exactly 1 where nothing is removed."""
    if before.count == after.count:
        return 1.0
    return min(1.0, float((log_sum(before.scores[after.kept]) - before.log_z).exp()))


def _without(chain: _Chain, stages: tuple[SamplingStage, ...], name: str) -> _Level:
    greedy = chain.greedy and name != _GREEDY
    rest = [stage for stage in stages if stage.name != name]
    return _Chain(chain.raw, chain.ids, greedy).run(rest)[-1]


def _same(one: _Level, other: _Level) -> bool:
    if not torch.equal(one.kept, other.kept):
        return False
    places = one.kept.nonzero()[:, 0]
    return bool(((one.probabilities(places) - other.probabilities(places)).abs() <= _SAME).all())


def _shown(seen: list[_Level], top_n: int) -> torch.Tensor:
    """Ids of the rows: the highest before the stages and after them, by raw score, ties by id."""
    among = torch.zeros_like(seen[0].kept)
    for level in (seen[0], seen[-1]) if top_n else ():
        best = highest(level.scores[None], top_n)[0]
        among[best[level.kept[best]]] = True
    return ranked(seen[0].scores, among)[1]


def _rows(seen: list[_Level], shown: torch.Tensor) -> tuple[WaterfallRow, ...]:
    logits = [level.scores[shown].tolist() for level in seen]
    probabilities = [level.probabilities(shown).tolist() for level in seen]
    touched = _penalised(seen, shown)
    return tuple(
        WaterfallRow(
            id=id,
            raw_logit=logits[0][row],
            raw_probability=probabilities[0][row],
            logits=tuple(_finite(column[row]) for column in logits[1:]),
            probabilities=tuple(column[row] for column in probabilities[1:]),
            removed_by=_removed_by(seen, [column[row] for column in logits]),
            penalised=touched[row],
        )
        for row, id in enumerate(shown.tolist())
    )


def _penalised(seen: list[_Level], shown: torch.Tensor) -> list[bool]:
    """Which of the shown had another score after the penalty than before it."""
    for before, after in pairwise(seen):
        if after.name == "repetition_penalty":
            return list((before.scores[shown] != after.scores[shown]).tolist())
    return [False] * len(shown)


def _removed_by(seen: list[_Level], logits: list[float]) -> str | None:
    return next(
        (level.name for level, logit in zip(seen, logits, strict=True) if _finite(logit) is None), None
    )


def _finite(logit: float) -> float | None:
    return logit if math.isfinite(logit) else None
