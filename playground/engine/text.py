"""Chosen ids to the text a reader sees, a token at a time.

Two things hold text back: a character whose last byte has not come (UTF-8), and an ending that may
yet become a stop string. Knows no model.
"""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from itertools import islice
from typing import Any

from playground.engine.vocabulary import Vocabulary

_REPLACEMENT = "\ufffd"
_Utf8 = getincrementaldecoder("utf-8")


class TextStream:
    """Incremental decoding of one lane. The texts of `add`, and `tail`, joined are its whole text.

    Where the vocabulary knows every token's bytes, the text is those bytes read as UTF-8, a stray byte
    as U+FFFD. Special tokens add nothing. `prefix` are ids that come before (the prompt), for
    tokenizers whose pieces read differently at a beginning.
    """

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary, prefix: Sequence[int]) -> None:
        self._vocabulary = vocabulary
        self._pieces = None if vocabulary.exact else _Window(tokenizer, _last_written(vocabulary, prefix))
        self._utf8 = _Utf8("replace")
        self.text = ""

    def add(self, id: int) -> str:
        """The text that `id` completes, empty while a character is unfinished."""
        token = self._vocabulary.token(id)
        if token.special:
            return ""
        piece = self._pieces.add(id) if self._pieces else self._utf8.decode(bytes.fromhex(token.bytes))
        self.text += piece
        return piece

    def go_on(self, ids: Sequence[int]) -> str:
        """Take `ids` as read before: their text is returned, and what comes is the text after it."""
        for id in ids:
            self.add(id)
        before, self.text = self.text, ""
        return before

    def tail(self) -> str:
        """What is left at the end: bytes that never became a character, as U+FFFD."""
        piece = self._pieces.tail() if self._pieces else self._utf8.decode(b"", final=True)
        self.text += piece
        return piece


class _Window:
    """Text by decoding the last few ids again, for tokenizers that join pieces by rules of their own."""

    def __init__(self, tokenizer: Any, prefix: list[int]) -> None:
        self._tokenizer = tokenizer
        self._ids = prefix
        self._shown = len(self._ids)

    def add(self, id: int) -> str:
        self._ids.append(id)
        piece = self._news()
        if not piece or piece.endswith(_REPLACEMENT):
            return ""
        self._ids = self._ids[self._shown :]
        self._shown = len(self._ids)
        return piece

    def tail(self) -> str:
        piece = self._news()
        self._shown = len(self._ids)
        return piece

    def _news(self) -> str:
        return self._decode(self._ids)[len(self._decode(self._ids[: self._shown])) :]

    def _decode(self, ids: list[int]) -> str:
        text = self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return str(text)


def _last_written(vocabulary: Vocabulary, ids: Sequence[int]) -> list[int]:
    """The last few of `ids` that are text: a chat template ends in tokens that are not."""
    written = (id for id in reversed(ids) if not vocabulary.token(id).special)
    return list(islice(written, 4))[::-1]


class StopStrings:
    """Finds the first stop string in a growing text and says how much of its end to hold back.

    `before` is what stands before that text, where a run goes on from another one: a stop string may begin in
    it, its place is then negative, and what is held reaches into it. One that ends there is none.
    """

    def __init__(self, strings: Sequence[str], before: str = "") -> None:
        self._strings = tuple(strings)
        self._longest = max(map(len, strings), default=0)
        self._before = before[max(0, len(before) - self._longest + 1) :]

    def found(self, text: str, added: int) -> tuple[int, str] | None:
        """Place and wording of the earliest stop string that ends within the last `added` characters."""
        begin = len(text) - added - self._longest + 1
        end, base = self._end(text, begin)
        hits = [(end.find(string), string) for string in self._strings]
        return min(((base + place, string) for place, string in hits if place >= 0), default=None)

    def held(self, text: str, added: int) -> int:
        """Length of the end of `text` not to show: a stop string's, or the longest beginning of one."""
        found = self.found(text, added)
        if found is not None:
            return len(text) - found[0]
        end, _ = self._end(text, len(text) - self._longest + 1)
        for length in range(len(end), 0, -1):
            if any(string.startswith(end[-length:]) for string in self._strings):
                return length
        return 0

    def _end(self, text: str, begin: int) -> tuple[str, int]:
        """The text from place `begin` on, as far as it is known, and the place where that begins."""
        if begin >= 0:
            return text[begin:], begin
        before = self._before[max(0, len(self._before) + begin) :]
        return before + text, -len(before)
