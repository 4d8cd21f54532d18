"""From what the user typed to the ids that the model reads, and whose words each id is.

Chat renders the model's own template, raw follows the tokenizer; both say what was added. Nothing
is stripped or repaired silently. Knows no forward.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playground.core.events import Note
from playground.core.request import PROMPT_CHARACTERS_LIMIT, Request
from playground.core.tokens import Token
from playground.engine.errors import RequestError
from playground.engine.vocabulary import Vocabulary

_STAND_IN = "the-words-of-the-user"
"""Rendered in the prompt's place, it shows where the chat template puts it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Tokens in order, which of them are the user's own words, and what the user should know."""

    tokens: tuple[Token, ...]
    own: tuple[bool, ...]
    notes: tuple[Note, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that the model reads."""
        return tuple(token.id for token in self.tokens)


def encode_prompt(tokenizer: Any, vocabulary: Vocabulary, request: Request) -> Prompt:
    """Render and tokenize the request's prompt; ids given by the caller are taken as they are.

    Raises `RequestError` for an empty or unreadable prompt.
    """
    if request.prompt_ids is not None:
        return _from_ids(vocabulary, request.prompt_ids)
    require_text("prompt", request.prompt)
    if request.system is not None:
        require_text("system prompt", request.system)
    if not request.prompt:
        raise RequestError("The prompt is empty; type something for the model to continue.")
    if request.chat and tokenizer.chat_template:
        return _chat(tokenizer, vocabulary, request)
    return _raw(tokenizer, vocabulary, request)


def _from_ids(vocabulary: Vocabulary, ids: Sequence[int]) -> Prompt:
    if not ids:
        raise RequestError("The list of prompt ids is empty; give at least one.")
    if any(type(id) is not int for id in ids):
        raise RequestError("prompt_ids must be a list of token ids.")
    bad = next((id for id in ids if not 0 <= id < vocabulary.rows), None)
    if bad is not None:
        raise RequestError(f"Token id {bad} is outside this model's vocabulary of {vocabulary.rows:,}.")
    return Prompt(vocabulary.tokens(ids), (True,) * len(ids))


def _chat(tokenizer: Any, vocabulary: Vocabulary, request: Request) -> Prompt:
    rendered = _rendered(tokenizer, request.prompt, request.system)
    ids, spans = _tokenize(tokenizer, rendered, add_special_tokens=False)
    begin, end = _words(rendered, _rendered(tokenizer, _STAND_IN, request.system), request.prompt)
    own = tuple(b > begin and a < end and b > a for a, b in spans)
    return Prompt(vocabulary.tokens(ids), own)


def _rendered(tokenizer: Any, prompt: str, system: str | None) -> str:
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": prompt})
    try:
        text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # the template is a program that came with the model
        raise RequestError(f"The model's chat template refused this prompt ({error}).") from None
    return str(text)


def _words(rendered: str, frame: str, prompt: str) -> tuple[int, int]:
    """Where the user's words stand in `rendered`; `frame` is the template around the stand-in."""
    before, _, after = frame.rpartition(_STAND_IN)
    if rendered.startswith(before) and rendered.endswith(after):
        return len(before), len(rendered) - len(after)
    begin = max(0, rendered.find(prompt.strip()))
    return begin, begin + len(prompt.strip())


def _raw(tokenizer: Any, vocabulary: Vocabulary, request: Request) -> Prompt:
    ids, spans = _tokenize(tokenizer, request.prompt, add_special_tokens=True)
    if not ids:
        raise RequestError("The prompt contains nothing that this tokenizer turns into a token.")
    tokens = vocabulary.tokens(ids)
    own = tuple(b > a for a, b in spans)
    return Prompt(tokens, own, tuple(_raw_notes(request, tokens, own)))


def _raw_notes(request: Request, tokens: Sequence[Token], own: Sequence[bool]) -> list[Note]:
    notes = []
    if request.chat:
        notes.append(Note("no_template", "This model has no chat template, so the prompt is used raw."))
    if request.system and request.chat:
        notes.append(
            Note("no_system", "Without a chat template the system prompt has no place and was left out.")
        )
    added = "".join(token.text for token, mine in zip(tokens, own, strict=True) if not mine)
    if added:
        notes.append(Note("raw_adds", f"The tokenizer adds {added} to a raw prompt by itself.", added))
    if tokens[-1].text == " ":
        notes.append(
            Note("lone_space", "The prompt ends with a space that is a token of its own; models usually "
                 "expect the space at the beginning of the next word.")
        )  # fmt: skip
    return notes


def _tokenize(
    tokenizer: Any, text: str, *, add_special_tokens: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    if not getattr(tokenizer, "is_fast", False):
        ids = tokenizer(text, add_special_tokens=add_special_tokens)["input_ids"]
        return ids, [(0, 1)] * len(ids)
    encoded = tokenizer(text, add_special_tokens=add_special_tokens, return_offsets_mapping=True)
    return encoded["input_ids"], encoded["offset_mapping"]


def require_text(name: str, text: object) -> None:
    """Refuse what is too long or no text at all; `name` says what it is."""
    if not isinstance(text, str):
        raise RequestError(f"The {name} must be text, not {repr(text)[:60]}.")
    if len(text) > PROMPT_CHARACTERS_LIMIT:
        raise RequestError(
            f"The {name} has {len(text):,} characters; at most {PROMPT_CHARACTERS_LIMIT:,} are read."
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise RequestError(
            f"The {name} contains half of a surrogate pair, which is not text; remove it and try again."
        ) from None
