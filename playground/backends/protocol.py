"""What every source of tokens looks like to the page, the command line and the tests.

Knows no particular backend.
"""

from collections.abc import Iterator
from typing import Protocol

from playground.core.control import Control
from playground.core.events import Event
from playground.core.refusal import Refused
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Token


class BackendError(Refused):
    """A request that cannot be run; the message is one sentence: what is wrong, what to do."""

    wrong_use = True


class Backend(Protocol):
    """A model somewhere: here (`local`), recorded (`replay`), or behind a server."""

    def facts(self) -> ModelFacts:
        """The model as it is known without running it."""
        ...

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt's tokens, rendered, and for each whether it is the user's own text."""
        ...

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        """Run `request`: a generator of events that asks `control` before each forward."""
        ...
