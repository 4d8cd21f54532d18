"""A token as a value: the id is its identity, text and bytes are for display.

Knows no tokenizer; the engine fills these in.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Token:
    """One vocabulary entry.

    `text` is the piece decoded alone, so half an emoji reads as U+FFFD; `bytes` is the exact
    piece in lower-case hexadecimal. Never encode `text` again to find an id.
    """

    id: int
    text: str
    bytes: str = ""
    special: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could have been chosen at one step, under both distributions.

    `raw_logprob` is the natural logarithm of the softmax over the full vocabulary;
    `processed_probability` is after penalties, temperature and filters, exactly 0 where
    `removed_by` names the stage (or "greedy") that took the token away.
    """

    token: Token
    raw_logprob: float
    processed_probability: float
    removed_by: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """A candidate at one place, and the natural logarithm of its raw probability."""

    token: Token
    logprob: float

    @property
    def probability(self) -> float:
        """The raw probability."""
        return math.exp(self.logprob)
