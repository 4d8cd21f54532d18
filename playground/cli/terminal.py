"""What the commands write: text and JSON on stdout, progress and sentences on stderr.

A model's output is untrusted: on a terminal its control characters are shown, never obeyed. Knows
no model.
"""

import json
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from typing import Any

import rich.console
import rich.markup
from rich.table import Table

from playground.core.printable import one_line, visible

console = rich.console.Console(stderr=True, highlight=False, soft_wrap=True)
"""For people: progress, summaries, errors."""

PIPE_WIDTH = 1000

output = rich.console.Console(highlight=False)
"""For tables on stdout."""


def prepare_streams() -> None:
    """No character may end a command: what a stream cannot encode is written as its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


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
