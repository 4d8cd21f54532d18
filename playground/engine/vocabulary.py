"""Ids to tokens: the exact bytes behind each id, and what it looks like.

Reads the tokenizer's own description of how pieces become text, so that half an emoji keeps its
bytes. Knows no model and no run.
"""

import json
import re
from typing import Any

from playground.core.tokens import Token

_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_METASPACE = "\u2581"


def _byte_alphabet() -> dict[str, int]:
    """The printable stand-ins of byte-level BPE (Radford et al. 2019): character to byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


_ALPHABET = _byte_alphabet()


class Vocabulary:
    """The tokens of one tokenizer, by id; a model's vocabulary may have more `rows` than it has entries."""

    def __init__(self, tokenizer: Any, rows: int | None = None) -> None:
        self.rows = len(tokenizer) if rows is None else rows
        self._tokenizer = tokenizer
        self._special = set(tokenizer.all_special_ids)
        self._added = {id: str(added) for id, added in tokenizer.added_tokens_decoder.items()}
        self._special |= {id for id, added in tokenizer.added_tokens_decoder.items() if added.special}
        self._scheme = _scheme(tokenizer)
        self._known: dict[int, Token] = {}

    @property
    def exact(self) -> bool:
        """Whether the bytes of a token are the same wherever it stands."""
        return self._scheme != "other"

    def token(self, id: int) -> Token:
        """The token of `id`; a row of the vocabulary that the tokenizer does not use says so."""
        token = self._known.get(id)
        if token is None:
            token = self._known[id] = self._read(id)
        return token

    def tokens(self, ids: Any) -> tuple[Token, ...]:
        """The tokens of several ids, in order."""
        return tuple(self.token(id) for id in ids)

    def _read(self, id: int) -> Token:
        if id in self._added:
            text = self._added[id]
            return Token(id, text, text.encode().hex(), id in self._special)
        piece = self._piece(id)
        if piece is None:
            return Token(id, f"unused id {id}", "", True)
        data = self._bytes(piece, id)
        return Token(id, data.decode("utf-8", "replace"), data.hex(), id in self._special)

    def _piece(self, id: int) -> str | None:
        try:
            piece: str | None = self._tokenizer.convert_ids_to_tokens(id)
        except (IndexError, KeyError):  # tokenizers written in Python look it up in a list or a dictionary
            return None
        return piece

    def _bytes(self, piece: str, id: int) -> bytes:
        if self._scheme == "byte-level" and all(character in _ALPHABET for character in piece):
            return bytes(_ALPHABET[character] for character in piece)
        if self._scheme == "sentencepiece":
            byte = _BYTE_PIECE.fullmatch(piece)
            return bytes.fromhex(byte[1]) if byte else piece.replace(_METASPACE, " ").encode()
        return str(self._tokenizer.decode([id], clean_up_tokenization_spaces=False)).encode()


def _scheme(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return "sentencepiece" if hasattr(tokenizer, "sp_model") else "other"
    description = json.loads(backend.to_str())
    parts = json.dumps([description.get(part) for part in ("decoder", "pre_tokenizer", "normalizer")])
    if '"ByteLevel"' in parts:
        return "byte-level"
    marks = ("Metaspace", "ByteFallback", json.dumps(_METASPACE)[1:-1])
    return "sentencepiece" if any(mark in parts for mark in marks) else "other"
