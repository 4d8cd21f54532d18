"""The model in this process as a backend: the engine, its refusals turned into `BackendError`.

Knows no page, and no torch beyond what the engine does with it.
"""

from collections.abc import Iterator
from typing import Any

from playground.backends.protocol import BackendError
from playground.core.control import Control
from playground.core.events import Event
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Token
from playground.engine.decode import stream
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.prompts import encode_prompt
from playground.engine.vocabulary import Vocabulary


class LocalTokenizer:
    """A tokenizer without its model."""

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary | None = None) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary or Vocabulary(tokenizer)

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """As `LocalBackend.tokenize`."""
        try:
            found = encode_prompt(
                self._tokenizer, self._vocabulary, Request(prompt, chat=chat, system=system)
            )
        except RequestError as error:
            raise BackendError(str(error)) from None
        return list(found.tokens), list(found.own)


class LocalBackend:
    """Runs requests on `model`; several at once take turns, one forward each."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model

    def facts(self) -> ModelFacts:
        """The loaded model."""
        return self.model.facts

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt's tokens as a run would read them, and which are the user's own text.

        Raises `BackendError` for an empty or unreadable prompt.
        """
        own = LocalTokenizer(self.model.tokenizer, self.model.vocabulary)
        return own.tokenize(prompt, chat=chat, system=system)

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        """The engine's events. Raises `BackendError` or `InvalidSetting` before the first one."""
        try:
            return stream(self.model, request, control=control)
        except RequestError as error:
            raise BackendError(str(error)) from None
