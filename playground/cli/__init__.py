"""The command `first-token`.

Every command answers `--help` without torch or gradio: heavy imports wait until a command runs.
Exit codes: 0 success, 2 wrong use, 1 a failure; an error is one sentence on stderr, and what is logged
beside it (tracebacks) is for `--verbose` and for the terminal of `serve`. Knows the layers below and
nothing of their insides.
"""

import logging
import sys
from importlib import import_module
from typing import Annotated

import typer

from playground import __version__
from playground.cli.terminal import complain, prepare_streams
from playground.core.refusal import Refused

app = typer.Typer(
    help="See what happens between a prompt and the words a language model answers.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _name in (
    "serve",
    "generate",
    "compare",
    "race",
    "score",
    "tokens",
    "kv",
    "replay",
    "gallery",
    "models",
    "doctor",
    "bench",
):
    import_module(f"playground.cli.{_name}").register(app)

_log = logging.getLogger(__name__)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"first-token {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print what is logged: the details of errors.")]


@app.callback()
def _root(context: typer.Context, version: Version = False, verbose: Verbose = False) -> None:
    shown = verbose or context.invoked_subcommand == "serve"
    logging.getLogger("playground").handlers = [] if shown else [logging.NullHandler()]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    prepare_streams()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: list[str]) -> int:
    """Run one command; returns its exit code, every error already said."""
    try:
        return int(app(arguments or ["--help"], prog_name="first-token", standalone_mode=False) or 0)
    except typer.TyperException as error:
        complain(f"{error.format_message().rstrip('.')}; see first-token --help.")
        return error.exit_code
    except Refused as error:
        complain(str(error))
        return 2 if error.wrong_use else 1
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}.")
        return 1
    except (KeyboardInterrupt, typer.Abort):
        complain("Interrupted.")
        return 130
    except Exception as error:
        _log.exception("A command failed.")
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        complain(f"Unexpected fault ({what}); nothing was changed: first-token --verbose says where.")
        return 1


def _reader_gone() -> int:
    # `first-token ... | head` closed the pipe; Python would complain once more while it exits.
    sys.stdout = None
    return 1
