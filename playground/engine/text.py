"""Chosen ids to the text a reader sees, a token at a time.

Two things hold text back: a character whose last byte has not come (UTF-8), and an ending that may
yet become a stop string. Knows no model.
"""

from collections.abc import Sequence
from typing import Any

from tokenizers.decoders import DecodeStream

_REPLACEMENT = "\ufffd"


class TextStream:
    """Incremental decoding of one lane. The texts of `add`, and `tail`, joined are its whole decoding.

    `prefix` are ids that come before (the prompt): tokenizers that mark word starts need them.
    """

    def __init__(self, tokenizer: Any, prefix: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._backend = getattr(tokenizer, "backend_tokenizer", None)
        self._stream = DecodeStream(ids=list(prefix[-8:]), skip_special_tokens=True)
        self._pending: list[int] = []
        self.text = ""

    def add(self, id: int) -> str:
        """The text that `id` completes, empty while a character is unfinished."""
        self._pending.append(id)
        if self._backend is None:
            piece = self._decode_pending()
            piece = "" if piece.endswith(_REPLACEMENT) else piece
        else:
            piece = self._stream.step(self._backend, id) or ""
        if piece:
            self._pending.clear()
        self.text += piece
        return piece

    def tail(self) -> str:
        """What is left at the end: bytes that never became a character, as U+FFFD."""
        piece = self._decode_pending() if self._pending else ""
        self._pending.clear()
        self.text += piece
        return piece

    def _decode_pending(self) -> str:
        return str(
            self._tokenizer.decode(
                self._pending, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        )


class StopStrings:
    """Finds the first stop string in a growing text and says how much of its end to hold back."""

    def __init__(self, strings: Sequence[str]) -> None:
        self._strings = tuple(strings)
        self._longest = max(map(len, strings), default=0)

    def found(self, text: str, added: int) -> tuple[int, str] | None:
        """Place and wording of the earliest stop string that ends within the last `added` characters."""
        begin = max(0, len(text) - added - self._longest + 1)
        hits = [(text.find(string, begin), string) for string in self._strings]
        return min((hit for hit in hits if hit[0] >= 0), default=None)

    def held(self, text: str, added: int) -> int:
        """Length of the end of `text` not to show: a stop string's, or the longest beginning of one."""
        found = self.found(text, added)
        if found is not None:
            return len(text) - found[0]
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            if any(string.startswith(text[-length:]) for string in self._strings):
                return length
        return 0
