"""The filter waterfall of one step: what every stage made of the candidates, as a value.

The names are those of the record of a step. Knows no tensor and no tokenizer.
"""

from dataclasses import asdict, dataclass
from typing import Any

from playground.core.tokens import Token


@dataclass(frozen=True, slots=True)
class StageEffect:
    """What one stage did at this step.

    `setting` is its value (None where it has no single one, as greedy and a ban). `kept_share` is what it
    kept of its own input's probability, `kept_mass` what is left of all in the end, the product of the
    shares so far. `removed_count` is out of the `kept_count` of the stage before. `inert` tells that the chain run
    again without this stage ends with the same candidates and the same probabilities.
    """

    name: str
    setting: float | None
    filters: bool
    kept_count: int
    removed_count: int
    kept_share: float
    kept_mass: float
    inert: bool


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """One candidate on its way through the stages.

    `logits[i]` and `probabilities[i]` are as stage i left them: None and 0 once the candidate is
    removed, which stage `removed_by` did. `penalised` tells that the repetition penalty changed its
    score. Raw are those of the model.
    """

    id: int
    raw_logit: float
    raw_probability: float
    logits: tuple[float | None, ...]
    probabilities: tuple[float, ...]
    removed_by: str | None
    penalised: bool


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The stages of one step in the order in which they acted, and the candidates.

    `possible_count` candidates go in: the vocabulary, less what the model itself rules out.
    `penalty_scope` tells which tokens a penalty looks at: all, or output for those of the answer.
    Rows are the most probable before the stages and after them, by raw probability, ties by id.
    """

    possible_count: int
    penalty_scope: str
    stages: tuple[StageEffect, ...]
    rows: tuple[WaterfallRow, ...]

    def as_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class StepWaterfall:
    """A step's `waterfall`, the `tokens` of its rows by id, and the positions computed and reused for it."""

    waterfall: Waterfall
    tokens: dict[int, Token]
    computed: int
    reused: int
