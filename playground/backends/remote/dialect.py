"""What every way of speaking to a server has in common: the seam between a run and an API.

Knows no API.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from playground.backends.remote.answers import Answer, Ended
from playground.backends.remote.capabilities import Capabilities
from playground.backends.remote.connection import Close
from playground.core.decoding import Decoding
from playground.core.events import Distribution, Note
from playground.core.request import ModelFacts, Request
from playground.core.scoring import Scoring
from playground.core.tokens import Token


@dataclass(frozen=True, slots=True)
class Asked:
    """One lane's prompt as the server takes it: ids, or where it takes none the words."""

    ids: tuple[int, ...] | None
    prompt: str
    chat: bool
    system: str | None
    decoding: Decoding
    top_n: int


class Dialect(Protocol):
    """One model behind one server."""

    facts: ModelFacts
    capabilities: Capabilities
    distribution: Distribution
    notes: tuple[Note, ...]

    def settled(self, decoding: Decoding) -> Decoding:
        """The settings as the server will act by them; raises `BackendError` for what it cannot do."""
        ...

    def tokens(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt as the server reads it, and which tokens are the user's own words."""
        ...

    def named(self, ids: tuple[int, ...]) -> list[Token]:
        """The tokens of ids that somebody else chose."""
        ...

    def cut(self, text: str) -> list[Token]:
        """A text that goes on from another one, cut alone; only called where prompts go as ids."""
        ...

    def answers(self, asked: Asked, opened: "Opened") -> Iterator[Answer | Ended]:
        """The chosen tokens as they come; `opened` is given what closes the stream."""
        ...

    def score(self, request: Request, text: str | None, top: int) -> Scoring:
        """The probability of a given text; only called where the capability is there."""
        ...

    def kv_share(self) -> float | None:
        """The share of the server's own cache that is in use now; None where it does not tell."""
        ...


class Opened(Protocol):
    """Called once a stream is open, with what ends it."""

    def __call__(self, close: Close) -> None:
        """Take `close`."""
        ...


DRAWS = Note(
    "server_draws",
    "The server draws by itself: a seed repeats a run there, and gives other draws than on this machine.",
)
"""Of every server: the uniform number behind a token is not known here."""


def own_words(rendered: list[str], prompt: str, frame: tuple[str, str]) -> list[bool]:
    """Whose each piece is: `frame` is what the template puts before and after the user's words."""
    begin, length = len(frame[0].encode()), len(prompt.encode())
    owns, at = [], 0
    for piece in rendered:
        size = len(bytes.fromhex(piece))
        owns.append(at < begin + length and at + size > begin)
        at += size
    return owns


ORDER_OF_ITS_OWN = Note(
    "server_order", "This server applies its stages in an order of its own, which is used here."
)
