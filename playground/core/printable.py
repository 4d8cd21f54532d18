"""Text from outside as it can stand among ours: what cannot be seen or turns a line about, as an escape.

Knows no place where it is shown.
"""

import unicodedata

_JOINERS = "\u200c\u200d"


def visible(text: str) -> str:
    """`text` with control, direction and surrogate characters as escapes; line ends and tabs stay."""
    return "".join(c if c in "\n\t" or _harmless(c) else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """`text` as it can stand in a line or a table: line ends and tabs as escapes too."""
    return "".join(c if _harmless(c) else _escaped(c) for c in text)


def _harmless(character: str) -> bool:
    # Spaces of every script and the joiners inside emoji and Indic words obey nobody;
    # `isprintable` alone would escape them.
    if character.isprintable() or character in _JOINERS:
        return True
    return unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
