"""`first-token compare`: several ways of choosing, from one reading of the prompt, side by side."""

from dataclasses import replace
from typing import Annotated

import typer
from rich.live import Live

from playground.backends.protocol import Backend
from playground.cli import options
from playground.cli.columns import lane_name, lanes_table
from playground.cli.generate import Prompt, read_prompt
from playground.cli.running import conclude, follow, local_backend, notes, require_writable, silent
from playground.cli.summary import cache_line, lane_details, model_line, sentence
from playground.cli.terminal import console, output, say, whisper, write_json
from playground.core.compare import lanes_first_divergence
from playground.core.decoding import Decoding, InvalidSetting, parse_decoding
from playground.core.events import Event
from playground.core.report import comparison
from playground.core.request import LANES_LIMIT, Request
from playground.core.run import Run
from playground.core.stages import read_order

LaneSpecs = Annotated[
    list[str] | None,
    typer.Option("--lane", metavar="SPEC", help="greedy, or temperature=0.8,top_p=0.9,seed=1; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(compare)


def compare(
    prompt: Prompt,
    lane: LaneSpecs = None,
    chat: options.Chat = True,
    system: options.System = None,
    seed: options.Seed = None,
    max_new_tokens: options.MaxNewTokens = 64,
    order: options.Order = "transformers",
    top_n: options.TopN = 20,
    model: options.Model = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    offline: options.Offline = False,
    trace: options.TraceFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Run several settings on one prompt, side by side.

    The first lane is the reference that the others are compared with.
    """
    base = Decoding(seed=seed, max_new_tokens=max_new_tokens, order=read_order(order))
    lanes = read_lanes(lane or [], base)
    require_writable(trace)
    request = Request(prompt=read_prompt(prompt), lanes=lanes, chat=chat, system=system, top_n=top_n)
    backend = local_backend(model, device, dtype, offline)
    quietly = as_json or not output.is_terminal
    run = follow(backend, request, silent) if quietly else _painted(backend, request)
    if run.lanes:
        _report(run, as_json)
    if as_json:
        write_json(comparison(run))
    return conclude(run, trace)


def read_lanes(specs: list[str], base: Decoding) -> tuple[Decoding, ...]:
    """The lanes of `specs`, named by them; raises `InvalidSetting`."""
    if not 2 <= len(specs) <= LANES_LIMIT:
        raise InvalidSetting(
            f"compare needs from 2 to {LANES_LIMIT} lanes, not {len(specs)}: "
            "give --lane greedy --lane temperature=0.8,top_p=0.9 for example."
        )
    lanes = [parse_decoding(spec, base) for spec in specs]
    return tuple(replace(one, name=one.name or spec) for one, spec in zip(lanes, specs, strict=True))


def _painted(backend: Backend, request: Request) -> Run:
    """Follow the run in columns that grow in place; they are cleared at the end."""
    with Live(console=output, refresh_per_second=12, transient=True, vertical_overflow="crop") as live:

        def paint(run: Run, event: Event) -> None:
            if run.lanes:
                live.update(lanes_table(run, output.width))

        return follow(backend, request, paint)


def _report(run: Run, as_json: bool) -> None:
    if not as_json:
        output.print(lanes_table(run, output.width))
        console.print()
    longest = max(run.lanes, key=lambda lane: len(lane.steps))
    say(sentence(run, longest))
    say(_divergence(run))
    for one in run.lanes:
        whisper(f"{lane_name(one)}: {lane_details(one, run.lanes[0])}")
    whisper(f"{cache_line(run, longest)} in each lane")
    whisper(model_line(run))
    notes(run)


def _divergence(run: Run) -> str:
    step = lanes_first_divergence(run.lanes)
    if step is None:
        return "All lanes chose the same tokens from start to end."
    return f"The lanes first part at token {step + 1:,}."
