"""A text to the ids that would be appended to a prompt: the words as they are, no beginning of a text.

The text is cut alone and its ids are appended to the prompt's, since a model writes tokens and cannot
take its prompt's last one back. A leading space stays. Tokenizers that put a space before every text are
asked behind a line end, so that none is invented; whichever cut has exactly the bytes of the text is
taken. Where the tokenizer would cut prompt and text together in another way, a note says so. Knows no
model.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from playground.core.events import Note
from playground.core.tokens import Token
from playground.engine.errors import RequestError
from playground.engine.prompts import require_text
from playground.engine.vocabulary import Vocabulary

_ANCHOR = "\n"
_TAILS = (8, 4, 2, 1)
"""Tokens at the prompt's end that are cut again together with the text, the most that can be."""

_SEAM = Note(
    "seam",
    "The tokenizer would cut the end of the prompt and this text together in another way; the text is scored as "
    "it would be appended, cut alone.",
)


def encode_continuation(
    tokenizer: Any, vocabulary: Vocabulary, prompt: Sequence[Token], text: str
) -> tuple[tuple[Token, ...], tuple[Note, ...]]:
    """The tokens of `text` as they are appended to `prompt`, and what the user should know.

    Raises `RequestError` for a text that is empty or unreadable.
    """
    require_text("text", text)
    if not text:
        raise RequestError("The text to score is empty; give at least one character.")
    ids = _cut(tokenizer, vocabulary, text)
    if not ids:
        raise RequestError("The text contains nothing that this tokenizer turns into a token.")
    seam = _cut_differently(tokenizer, vocabulary, prompt, text, ids)
    return vocabulary.tokens(ids), (_SEAM,) if seam else ()


def _cut(tokenizer: Any, vocabulary: Vocabulary, text: str) -> list[int]:
    """The first cut that has the text's bytes, else (a tokenizer that changes letters) the plain one."""
    wanted, cuts = text.encode(), list(_cuts(tokenizer, text))
    return next((ids for ids in cuts if _bytes(vocabulary.tokens(ids)) == wanted), cuts[0])


def _cuts(tokenizer: Any, text: str) -> Iterator[list[int]]:
    yield _encode(tokenizer, text)
    anchor, whole = _encode(tokenizer, _ANCHOR), _encode(tokenizer, _ANCHOR + text)
    if whole[: len(anchor)] == anchor:
        yield whole[len(anchor) :]


def _encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _bytes(tokens: Sequence[Token]) -> bytes:
    return bytes.fromhex("".join(token.bytes for token in tokens))


def _cut_differently(
    tokenizer: Any, vocabulary: Vocabulary, prompt: Sequence[Token], text: str, ids: list[int]
) -> bool:
    """Whether the prompt's last tokens and the text, cut as one, are other tokens than each alone."""
    words = _own_words(prompt)
    for count in _TAILS:
        tail = [token.id for token in words[-count:]]
        before = _bytes(words[-count:]).decode("utf-8", "replace")
        if len(tail) == min(count, len(words)) and before and _cut(tokenizer, vocabulary, before) == tail:
            return _cut(tokenizer, vocabulary, before + text) != [*tail, *ids]
    return False


def _own_words(prompt: Sequence[Token]) -> list[Token]:
    """The end of the prompt that is plain text: what follows its last special token."""
    place = next((i for i in range(len(prompt), 0, -1) if prompt[i - 1].special), 0)
    return list(prompt[place:][-_TAILS[0] :])
