"""What other settings would have made of a recorded step, as values; the step itself stays as it was.

Each step is judged on the recorded context: after the first other token the text would go its own way,
which only a new run can show. Knows no tensor, no model and no page.
"""

import math
from dataclasses import dataclass

from playground.core.draws import uniform
from playground.core.events import Note
from playground.core.run import Run
from playground.core.tokens import Candidate, Token


@dataclass(frozen=True, slots=True)
class Source:
    """Where the logits came from: `kept` of an earlier reading, or `computed` anew.

    `computed` and `reused` count positions of the forwards that this answer took, `seconds` is their time.
    `held_bytes` of at most `limit_bytes` are kept for whoever asks.
    """

    kept: bool
    computed: int = 0
    reused: int = 0
    seconds: float = 0.0
    held_bytes: int = 0
    limit_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StepWhatIf:
    """One step under other settings: what would be taken with the same draw, and from what.

    `draw` is None where the settings take the most probable token. `token` is None where the run has no
    seed, so that there is no draw to hold. `kept_mass` is None where the kept candidates do not tell it.
    """

    token: Token | None
    draw: float | None
    processed_probability: float | None
    kept_count: int
    kept_mass: float | None
    entropy_bits: float
    candidates: tuple[Candidate, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class OtherChoice:
    """A step at which other settings would have taken `token`, which they give `probability`.

    `sure` is false where the logits, computed again, do not give the recorded token under the run's own
    settings either: in 16 bits, or on the very edge between two candidates.
    """

    step: int
    token: Token
    probability: float
    sure: bool = True


@dataclass(frozen=True, slots=True)
class RunWhatIf:
    """The steps of a whole lane at which other settings would have taken another token."""

    steps: int
    others: tuple[OtherChoice, ...]
    source: Source


@dataclass(frozen=True, slots=True)
class TokenOdds:
    """One token of a text that was asked about: rank and log-probability under the model, 1 the first.

    `processed_probability` is after the run's settings: 0 where a filter removes it.
    """

    token: Token
    rank: int
    logprob: float
    processed_probability: float


@dataclass(frozen=True, slots=True)
class TextOdds:
    """How probable a text is at a step, token by token along its path."""

    tokens: tuple[TokenOdds, ...]
    source: Source
    notes: tuple[Note, ...] = ()

    @property
    def logprob(self) -> float:
        """The logarithm of the product along the path, under the model."""
        return math.fsum(one.logprob for one in self.tokens)

    @property
    def processed_probability(self) -> float:
        """The product along the path after the settings."""
        return math.prod(one.processed_probability for one in self.tokens)


def held_draw(run: Run, lane: int, step: int, greedy: bool) -> float | None:
    """The draw of a step: the recorded one, else the one that the lane's seed gives it; None where there is none."""
    at = run.lanes[lane]
    recorded = at.steps[step].draw
    if greedy or recorded is not None:
        return None if greedy else recorded
    seed, started = at.decoding.seed, run.started
    first = started.request.parent.step if started is not None and started.request.parent else 0
    return None if seed is None else uniform(seed, first + step)
