"""One token as a server tells of it, whatever its dialect: read without trust into one shape.

Knows no stream.
"""

import math
from dataclasses import dataclass
from typing import Any

from playground.backends.remote.faults import NO_LOGPROBS_SENT, ServerFault
from playground.core.tokens import Token


@dataclass(frozen=True, slots=True)
class Timed:
    """What a server tells of the prompt: tokens it computed and reused, None where it does not."""

    computed: int | None = None
    reused: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One chosen token with its logprob, and the most probable candidates with theirs, best first.

    `beyond` tells that the chosen one was not among those that the server listed: its rank is at least the last.
    `forced`: a person put it.
    """

    token: Token
    logprob: float
    top: tuple[tuple[Token, float], ...]
    timed: Timed = Timed()
    beyond: bool = False
    forced: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The server's own reason: `length` or `stop`; None where it does not say."""

    reason: str | None


def logprob(value: Any) -> float:
    """A logprob as a server gives it: at most 0, minus infinity held at the record's bound."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ServerFault(NO_LOGPROBS_SENT)
    return float(min(0.0, max(-1e6, value)))


def whole(value: Any, limit: int = 2**40) -> int | None:
    """A count, None for anything else."""
    return value if type(value) is int and 0 <= value < limit else None


def token_bytes(value: Any) -> str | None:
    """Bytes as a list of numbers, in hexadecimal; None where they are not given."""
    if not isinstance(value, list) or not all(type(b) is int and 0 <= b < 256 for b in value):
        return None
    return bytes(value).hex()


def make_token(id: int, text: str, raw: str | None, special: bool = False) -> Token:
    """A token whose text is its bytes read alone, where they are known."""
    if raw is None:
        raw = text.encode("utf-8", "replace").hex()
    return Token(id, text if special else bytes.fromhex(raw).decode("utf-8", "replace"), raw, special)


def answer(token: Token, own: float, top: list[tuple[Token, float]], timed: Timed = Timed()) -> Answer:
    """Candidates best first, ties by id, each once, with the chosen one among them."""
    found = {one.id: (one, value) for one, value in top}
    beyond = token.id not in found
    found.setdefault(token.id, (token, own))
    ordered = sorted(found.values(), key=lambda one: (-one[1], one[0].id))
    return Answer(token, own, tuple(ordered), timed, beyond)
