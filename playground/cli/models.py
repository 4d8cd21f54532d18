"""`first-token models`: which models lie on this machine, and fetching or removing one; no torch."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from playground.cli import options
from playground.cli.running import progress_line
from playground.cli.terminal import say, write_json, write_table
from playground.core.units import bytes_text
from playground.engine.stored import StoredModel

Name = Annotated[str, typer.Argument(metavar="NAME", help="A name of models list, or a Hub id.")]
NameOrDefault = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="A name of models list, or a Hub id. Default: the default model."),
]

group = typer.Typer(help="Models on this machine: list, fetch, remove.", rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the group to `app`."""
    app.add_typer(group, name="models")


@group.command("list")
def list_(as_json: options.AsJson = False) -> None:
    """Where each model lies and how large it is."""
    from playground.engine.stored import stored

    found = stored()
    if as_json:
        write_json({"models": [_plain(model) for model in found]})
    else:
        write_table(_table(found))


@group.command()
def fetch(name: NameOrDefault = None, offline: options.Offline = False) -> None:
    """Fetch a model now, so that it is there later without a network."""
    from playground import settings
    from playground.engine import sources
    from playground.engine.hub import folder_bytes

    with progress_line() as report:
        found = sources.find(name or settings.from_environment().model, offline=offline, report=report)
    say(f"{found.name} is on this machine: {bytes_text(folder_bytes(found.folder))} in {found.folder}.")


@group.command()
def remove(name: Name) -> None:
    """Delete a model from this machine; what is in the Hub's cache is gone for other programs too."""
    from playground.engine import stored

    for gone in stored.remove(name):
        say(f"Removed {gone.name}: {bytes_text(gone.bytes)} in {gone.path}.")


def _plain(model: StoredModel) -> dict[str, object]:
    return asdict(model) | {"path": None if model.path is None else str(model.path)}


def _table(models: list[StoredModel]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("model", overflow="fold")
    table.add_column("size", justify="right", no_wrap=True)
    table.add_column("where", style="dim", overflow="fold")
    for model in models:
        name = f"{model.name} [dim](default)[/dim]" if model.default else model.name
        size = "" if model.bytes is None else bytes_text(model.bytes)
        table.add_row(name, size, "not fetched" if model.path is None else str(model.path))
    return table
