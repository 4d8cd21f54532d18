"""What the commands write: text and JSON on stdout, progress and sentences on stderr.

A model's output is untrusted: on a terminal its control characters are shown, never obeyed. Knows
no model.
"""

import json
import sys
import unicodedata
from collections.abc import Mapping
from io import TextIOWrapper
from typing import Any

import rich.console
import rich.markup
from rich.table import Table

console = rich.console.Console(stderr=True, highlight=False, soft_wrap=True)
"""For people: progress, summaries, errors."""

PIPE_WIDTH = 1000

_JOINERS = "\u200c\u200d"

output = rich.console.Console(highlight=False)
"""For tables on stdout."""


def prepare_streams() -> None:
    """No character may end a command: what a stream cannot encode is written as its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def visible(text: str) -> str:
    """`text` with control, direction and surrogate characters as escapes; line ends and tabs stay."""
    return "".join(c if c in "\n\t" or _harmless(c) else _escaped(c) for c in text)


def one_line(text: str) -> str:
    """`text` as it can stand in a table: line ends and tabs as escapes too."""
    return "".join(c if _harmless(c) else _escaped(c) for c in text)


def write_text(text: str) -> None:
    """A piece of a model's answer, at once; escaped where a terminal would obey it."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def write_json(value: Mapping[str, Any]) -> None:
    """`value` as one line of strict JSON (ASCII, so that every terminal and pipe carries it)."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()


def write_table(table: Table) -> None:
    """A table on stdout; in a pipe or a file no cell is folded."""
    if output.is_terminal:
        output.print(table)
    else:
        output.print(table, width=PIPE_WIDTH, crop=False)


def say(sentence: str) -> None:
    """A sentence on stderr."""
    console.print(rich.markup.escape(one_line(sentence)))


def whisper(sentence: str) -> None:
    """A detail on stderr, less bright than a sentence."""
    console.print(f"[dim]{rich.markup.escape(one_line(sentence))}[/dim]")


def complain(sentence: str) -> None:
    """An error on stderr."""
    console.print(f"[red]Error:[/red] {rich.markup.escape(one_line(sentence))}")


def _harmless(character: str) -> bool:
    # Spaces of every script and the joiners inside emoji and Indic words print nothing that a
    # terminal obeys; `isprintable` alone would escape them.
    if character.isprintable() or character in _JOINERS:
        return True
    return unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
