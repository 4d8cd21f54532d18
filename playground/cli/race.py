"""`first-token race`: one greedy run with the KV cache and without it, side by side."""

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import typer
from rich.live import Live
from rich.table import Table

from playground.cli import options
from playground.cli.generate import Prompt, read_prompt
from playground.cli.running import local_backend, require_writable, stopped_by_interrupt
from playground.cli.summary import failures, model_line
from playground.cli.terminal import complain, output, say, whisper, write_json, write_table
from playground.cli.tokens import piece
from playground.core.control import Control
from playground.core.decoding import GREEDY, validated
from playground.core.events import Stepped
from playground.core.metrics import timing
from playground.core.race import UNIT, Race, Raced, Ticked, follow, race_report, result
from playground.core.request import Request
from playground.core.run import Run
from playground.core.trace import dump_trace
from playground.core.units import seconds_text

if TYPE_CHECKING:
    from playground.backends.local import LocalBackend

LIVE_ROWS = 16


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(race)


def race(
    prompt: Prompt,
    chat: options.Chat = True,
    system: options.System = None,
    max_new_tokens: options.MaxNewTokens = 64,
    model: options.Model = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    offline: options.Offline = False,
    trace: options.TraceFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Race one run with the KV cache against the same without.

    The steps are taken in turn. Ctrl-C ends the race after the step in hand; what there is is kept.
    """
    lane = validated(replace(GREEDY, max_new_tokens=max_new_tokens))
    require_writable(trace)
    request = Request(prompt=read_prompt(prompt), lanes=(lane,), chat=chat, system=system, top_n=5)
    found = followed(local_backend(model, device, dtype, offline), request, as_json or not output.is_terminal)
    if not as_json:
        write_table(table(found, None))
    for line in sentences(found):
        say(line)
    whisper(model_line(found.cached))
    if as_json:
        write_json(race_report(found))
    return _conclude(found, trace)


def followed(backend: "LocalBackend", request: Request, quietly: bool) -> Race:
    """Follow a race to its end or to Ctrl-C, on a terminal in a table whose last rows are shown."""
    found, control = Race(), Control()
    with (
        stopped_by_interrupt(control),
        Live(console=output, refresh_per_second=12, transient=True, auto_refresh=not quietly) as live,
    ):
        for item in backend.race(request, control):
            follow(found, item)
            if not quietly:
                live.update(table(found, LIVE_ROWS))
    return found


def table(race: Race, rows: int | None) -> Table:
    """A row for each step: the token, both step times, the tick. The last `rows`, or all of them."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("token", "with cache", "without", "same", "logits differ by"):
        made.add_column(name, justify="left" if name in ("token", "same") else "right")
    sides = [run.lanes[0].steps if run.lanes else [] for run in (race.cached, race.uncached)]
    ticks = {tick.step: tick for tick in race.ticks}
    longest = max(map(len, sides))
    for step in range(max(0, longest - rows) if rows else 0, longest):
        with_it, without = (side[step] if step < len(side) else None for side in sides)
        shown = with_it or without
        assert shown is not None
        made.add_row(piece(shown.token), _seconds(with_it), _seconds(without), *_ticked(ticks.get(step)))
    return made


def sentences(race: Race) -> list[str]:
    """What a finished or stopped race says: times, sameness, the work saved."""
    found = race.raced or result(race)
    return [line for line in (_times(race), _sameness(found), _saved(found)) if line]


def _times(race: Race) -> str:
    with_it, without = (_step_seconds(run) for run in (race.cached, race.uncached))
    if not with_it or not without:
        return "The race was stopped before a step of both sides could be timed."
    return (
        f"A step took {seconds_text(median(with_it))} with the KV cache and {seconds_text(median(without))} without "
        f"(medians of {min(len(with_it), len(without)):,}); the last one {seconds_text(with_it[-1])} and "
        f"{seconds_text(without[-1])}."
    )


def _sameness(found: Raced) -> str:
    if found.compared_steps == 0 or found.max_logit_difference is None:
        return ""
    differ = f"logits differed by at most {found.max_logit_difference:.2g}"
    if found.first_divergence is None:
        return f"All {found.compared_steps:,} tokens are the same; {differ}."
    return (
        f"The sides part at token {found.first_divergence + 1:,}; up to there {differ}, and nothing is compared "
        "after it, since they read different texts."
    )


def _saved(found: Raced) -> str:
    with_it, without = found.cached, found.uncached
    if not with_it.kv_computed or not without.kv_computed:
        return ""
    return (
        f"Keys and values computed: {with_it.kv_computed:,} with the cache, {without.kv_computed:,} without; dot "
        f"products: {with_it.attention_dot_products_computed:,} and "
        f"{without.attention_dot_products_computed:,}, where {without.attention_dot_products_needed:,} are needed "
        f"(counted for {UNIT})."
    )


def _step_seconds(run: Run) -> list[float]:
    return timing(run, run.lanes[0]).step_seconds if run.lanes else []


def _seconds(step: Stepped | None) -> str:
    if step is None:
        return ""
    return "prefill" if step.step == 0 else seconds_text(step.end_seconds - step.start_seconds)


def _ticked(tick: Ticked | None) -> tuple[str, str]:
    if tick is None or tick.equal is None:
        return ("", "")
    return ("✓" if tick.equal else "✗", f"{tick.logit_difference:.1e}")


def _conclude(race: Race, trace: Path | None) -> int:
    if trace is not None:
        dump_trace(race, trace)
        whisper(f"Trace written to {trace}.")
    said = dict.fromkeys(sentence for run in (race.cached, race.uncached) for sentence in failures(run))
    for sentence in said:
        complain(sentence)
    return 1 if said else 0
