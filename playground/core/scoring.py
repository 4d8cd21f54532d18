"""How probable given tokens are, as values: nothing here was chosen, everything was asked.

A scoring holds the tokens that were asked about, each under the model's raw distribution at its
place, with what the model expected there instead. Knows no model and no tokenizer.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from playground.core.events import Note
from playground.core.request import ModelFacts
from playground.core.tokens import Expected, Token


@dataclass(frozen=True, slots=True)
class Scored:
    """One token under the raw distribution at its place.

    `position` is the token's place in the sequence, from 0. `rank` counts from 1, ties by id;
    `logprob` is the natural logarithm of its probability, minus infinity where the model holds it
    impossible; `entropy_bits` is of the whole distribution there, `expected` its most probable
    candidates. All are None, and `expected` is empty, for the first token of a sequence: nothing comes
    before it, so the model says nothing of it.
    """

    position: int
    token: Token
    rank: int | None = None
    logprob: float | None = None
    entropy_bits: float | None = None
    expected: tuple[Expected, ...] = ()

    @property
    def probability(self) -> float | None:
        """The raw probability, None where there is none."""
        return None if self.logprob is None else math.exp(self.logprob)

    @property
    def surprisal_bits(self) -> float | None:
        """-log2 of the probability; infinite for an impossible token."""
        return None if self.logprob is None else bits(self.logprob)


@dataclass(frozen=True, slots=True)
class Scoring:
    """The scored tokens in order: those of a continuation, or without one those of the prompt.

    `prompt_tokens` counts what was read before the continuation (all of it, where the prompt itself
    is scored); `seconds` is the time of the forwards and of the counting.
    """

    model: ModelFacts
    tokens: tuple[Scored, ...]
    text: str | None
    prompt_tokens: int
    seconds: float
    notes: tuple[Note, ...] = ()

    @property
    def logprob(self) -> float:
        """The logarithm of the product along the path: the sum over all tokens that have one."""
        return math.fsum(token.logprob for token in self.tokens if token.logprob is not None)

    @property
    def probability(self) -> float:
        """The product along the path; 0 where it is too small for a float."""
        return math.exp(self.logprob)

    @property
    def surprisal_bits(self) -> float:
        """The bits of the whole path."""
        return bits(self.logprob)


def bits(logprob: float) -> float:
    """Surprisal in bits of a natural logarithm."""
    return max(0.0, -logprob / math.log(2))


@dataclass(frozen=True, slots=True)
class Divergence:
    """How far the distributions of `other` are from those of `full` over one text, in bits a place.

    The largest one stands after `largest_after`; `agreed` counts the places whose most probable token is the same.
    """

    full: ModelFacts
    other: ModelFacts
    places: int
    mean_bits: float
    largest_bits: float
    largest_after: Token
    agreed: int


def divergence_report(found: Divergence) -> dict[str, Any]:
    """The JSON object under `against` in that of `first-token score --against`."""
    return {
        "model": asdict(found.full),
        "places": found.places,
        "mean_kl_bits": found.mean_bits,
        "largest_kl_bits": found.largest_bits,
        "largest_after": {"id": found.largest_after.id, "text": found.largest_after.text},
        "same_most_probable": found.agreed,
    }


def scoring_report(scoring: Scoring) -> dict[str, Any]:
    """The JSON object of `first-token score` and of `/score`.

    What is infinite for an impossible token, and what nothing is known of, is None; an impossible
    token's probability is 0.
    """
    return {
        "tokens": [_scored(token) for token in scoring.tokens],
        "logprob": _finite(scoring.logprob),
        "probability": scoring.probability,
        "surprisal_bits": _finite(scoring.surprisal_bits),
        "text": scoring.text,
        "prompt_tokens": scoring.prompt_tokens,
        "seconds": scoring.seconds,
        "notes": [note.text for note in scoring.notes],
        "model": asdict(scoring.model),
    }


def mean_surprisal_bits(tokens: Iterable[Scored]) -> float | None:
    """Mean over the tokens that have one; 2 to this power is the perplexity. None where none has."""
    found = [token.surprisal_bits for token in tokens if token.surprisal_bits is not None]
    return math.fsum(found) / len(found) if found else None


def _scored(token: Scored) -> dict[str, Any]:
    return {
        "id": token.token.id,
        "rank": token.rank,
        "logprob": _finite(token.logprob),
        "probability": token.probability,
        "surprisal_bits": _finite(token.surprisal_bits),
        "entropy_bits": token.entropy_bits,
        "position": token.position,
        "text": token.token.text,
        "bytes": token.token.bytes,
        "special": token.token.special,
        "expected": [
            {
                "id": one.token.id,
                "text": one.token.text,
                "probability": one.probability,
                "logprob": one.logprob,
            }
            for one in token.expected
        ],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
