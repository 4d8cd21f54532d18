"""`first-token export` and `first-token gallery`: traces as files for people; need no model and no torch."""

import re
from pathlib import Path
from typing import Annotated

import typer

from playground import settings
from playground.cli.replay import TraceArgument
from playground.cli.terminal import say, whisper
from playground.core.decoding import InvalidSetting
from playground.core.record import Record
from playground.core.trace import BadTrace, load_trace

Out = Annotated[Path, typer.Argument(metavar="OUT", help="The file to write: .html, .csv or .jsonl.")]
Traces = Annotated[
    list[Path] | None, typer.Argument(metavar="TRACES...", help="Trace files. Default: the shipped ones.")
]
Into = Annotated[Path, typer.Option("--into", metavar="FOLDER", help="Where the pages go; made if missing.")]
Language = Annotated[str, typer.Option("--language", help="The language that the pages open in: en or zh.")]


def register(app: typer.Typer) -> None:
    """Add both commands to `app`."""
    app.command()(export)
    app.command()(gallery)


def export(file: TraceArgument, out: Out, language: Language = "en") -> None:
    """Write a trace as a page that needs no server.

    OUT ends in .html: the page, which holds everything that it shows and opens from a disk; in .csv: the steps
    as a table; or in .jsonl: the trace itself, checked.
    """
    from playground.views.files import WRITERS

    write = WRITERS.get(out.suffix.lower().lstrip("."))
    if write is None:
        raise InvalidSetting(f"{out.name!r} must end in .html, .csv or .jsonl, which says what is written.")
    records = _records(file)
    _write(out, write(records, _language(language), _shipped(file)))
    say(f"{out} holds {_count(len(records), 'run')}.")


def gallery(into: Into, traces: Traces = None, language: Language = "en") -> None:
    """Make a folder of such pages with an index.

    One page a trace; no server is needed to look at them. Files that are no traces are left out and named.
    """
    from playground.views.entries import entry, shipped
    from playground.views.gallery import Exhibit, gallery_page
    from playground.views.offline import offline_page
    from playground.views.words import LANGUAGES

    opened = _language(language)
    into.mkdir(parents=True, exist_ok=True)
    exhibits: list[Exhibit] = []
    taken = {"index.html"}
    for file in traces or shipped(settings.assets_dir() / "traces"):
        try:
            records = _records(file)
        except BadTrace as error:
            whisper(f"Note: {file.name} is left out: {error}")
            continue
        name, stem = _free(file.stem, taken), _shipped(file)
        _write(into / name, offline_page(records, opened, stem))
        exhibits.append(Exhibit(name, {one: entry(records[0], one, stem) for one in LANGUAGES}))
    if not exhibits:
        raise BadTrace("None of these files holds a run, so there is no gallery.")
    _write(into / "index.html", gallery_page(exhibits, opened))
    say(f"{into / 'index.html'} shows {_count(len(exhibits), 'trace')}.")


def _records(file: Path) -> list[Record]:
    trace = load_trace(file)
    for note in trace.notes:
        whisper(f"Note: {note}")
    if not trace.records:
        raise BadTrace(f"{file.name} holds no run.")
    return trace.records


def _shipped(file: Path) -> str:
    """The stem of a trace that comes with the program, empty for any other."""
    return file.stem if file.resolve().parent == (settings.assets_dir() / "traces").resolve() else ""


def _language(language: str) -> str:
    from playground.views.words import LANGUAGES

    if language not in LANGUAGES:
        raise InvalidSetting(f"--language must be one of {', '.join(LANGUAGES)}, not {language!r}.")
    return language


def _free(stem: str, taken: set[str]) -> str:
    """A plain name of a page that is not taken yet."""
    plain = re.sub(r"[^\w-]+", "-", stem)[:60].strip("-") or "trace"
    names = (f"{plain}{n}.html" for n in ("", *(f"-{n}" for n in range(2, len(taken) + 3))))
    name = next(name for name in names if name.lower() not in taken)
    taken.add(name.lower())
    return name


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")


def _count(n: int, thing: str) -> str:
    return f"{n:,} {thing}" + ("" if n == 1 else "s")
