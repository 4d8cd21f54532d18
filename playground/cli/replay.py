"""`first-token replay`: a recorded run in the terminal; needs no model and no torch."""

from pathlib import Path
from typing import Annotated

import typer

from playground.cli import options
from playground.cli.columns import lanes_table
from playground.cli.running import conclude, notes
from playground.cli.summary import details, model_line, sentence
from playground.cli.terminal import output, say, whisper, write_json, write_text
from playground.cli.tree import draws_tree
from playground.core.decoding import InvalidSetting
from playground.core.printable import visible
from playground.core.report import comparison, generation
from playground.core.run import Run
from playground.core.trace import BadTrace, load_trace
from playground.core.tree import same_settings

TraceArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A trace file, as --trace writes it.")]
Which = Annotated[int, typer.Option("--run", help="Which run of a file that holds several; counted from 1.")]

COLUMNS_LIMIT = 6
"""More lanes of the same settings than these are shown as a tree."""


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(replay)


def replay(file: TraceArgument, run: Which = 1, as_json: options.AsJson = False) -> int:
    """Show a recorded run.

    With --json: the keys of generate, or of compare where the run has several lanes.
    """
    trace = load_trace(file)
    for note in trace.notes:
        whisper(f"Note: {note}")
    if not trace.runs:
        raise BadTrace(f"{file.name} holds no run.")
    if not 1 <= run <= len(trace.runs):
        raise InvalidSetting(f"--run must be from 1 to {len(trace.runs)}, the number of runs in {file.name}.")
    if len(trace.runs) > 1:
        whisper(f"Run {run} of {len(trace.runs)}.")
    shown = trace.runs[run - 1]
    _show(shown, as_json)
    return conclude(shown, None)


def _show(run: Run, as_json: bool) -> None:
    if not as_json:
        _prompt(run)
        if len(run.lanes) == 1:
            write_text(run.lanes[0].text + "\n")
        else:
            output.print(draws_tree(run) if _many(run) else lanes_table(run, output.width))
    say(sentence(run, max(run.lanes, key=lambda lane: len(lane.steps))))
    for lane in run.lanes[:1] if _many(run) else run.lanes:
        whisper(details(run, lane))
    whisper(f"Recorded: {model_line(run)}")
    notes(run)
    if as_json:
        write_json(generation(run) if len(run.lanes) == 1 else comparison(run))


def _many(run: Run) -> bool:
    """Whether the lanes are many draws of one distribution, which a tree shows better than columns."""
    return len(run.lanes) > COLUMNS_LIMIT and same_settings(run.lanes)


def _prompt(run: Run) -> None:
    prompt = run.started.request.prompt if run.started else ""
    if prompt:
        whisper(f"Prompt: {visible(prompt)}")
