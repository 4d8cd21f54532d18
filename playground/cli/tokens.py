"""`first-token tokens`: how the model's tokenizer cuts a text."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from playground.cli import options
from playground.cli.generate import read_prompt
from playground.cli.running import chosen_backend, local_tokenizer
from playground.cli.terminal import say, write_json, write_table
from playground.core.printable import one_line
from playground.core.tokens import Token

Words = Annotated[str, typer.Argument(metavar="TEXT", help="The text, or - to read it from stdin.")]
InChat = Annotated[bool, typer.Option("--chat/--raw", help="Put the text in the chat template first.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(tokens)


def tokens(
    text: Words,
    chat: InChat = False,
    system: options.System = None,
    model: options.Model = None,
    server: options.Server = None,
    offline: options.Offline = False,
    as_json: options.AsJson = False,
) -> None:
    """Cut a text into tokens."""
    text = read_prompt(text)
    source = (
        local_tokenizer(model, offline)
        if server is None
        else chosen_backend(server, model, "auto", "auto", offline)
    )
    found, own = source.tokenize(text, chat=chat, system=system)
    if as_json:
        write_json({"tokens": [asdict(token) for token in found]})
        return
    write_table(_table(found))
    added = own.count(False)
    adds = f", {added:,} of them added by {'the template' if chat else 'the tokenizer'}" if added else ""
    say(f"{len(found):,} token{'' if len(found) == 1 else 's'}{adds}.")


def _table(tokens: list[Token]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("id", justify="right")
    table.add_column("text")
    table.add_column("bytes", style="dim")
    for token in tokens:
        table.add_row(f"{token.id}", piece(token), one_line(token.bytes))
    return table


def piece(token: Token) -> str:
    """A token as markup for a table; a dot stands for a space, so that " os" and "os" are two rows."""
    text = one_line(token.text).replace(" ", "·").replace("[", "\\[")
    return f"{text} [dim](special)[/dim]" if token.special else text
