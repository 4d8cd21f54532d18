"""`first-token compare`: several ways of choosing, from one reading of the prompt, side by side."""

from dataclasses import replace
from typing import Annotated

import typer
from rich.live import Live

from playground.backends.protocol import Backend
from playground.cli import options
from playground.cli.columns import lane_name, lanes_table
from playground.cli.generate import Prompt, read_prompt
from playground.cli.running import chosen_backend, conclude, follow, notes, require_writable, silent
from playground.cli.summary import cache_line, lane_details, model_line, sentence
from playground.cli.terminal import console, output, say, whisper, write_json
from playground.cli.tree import draws_sentence, draws_tree
from playground.core.compare import lanes_first_divergence
from playground.core.decoding import Decoding, InvalidSetting, parse_decoding
from playground.core.events import Event
from playground.core.report import comparison
from playground.core.request import LANES_LIMIT, Request
from playground.core.run import Run
from playground.core.stages import read_order
from playground.core.tree import many_draws

LaneSpecs = Annotated[
    list[str] | None,
    typer.Option("--lane", metavar="SPEC", help="greedy, or temperature=0.8,top_p=0.9,seed=1; repeatable."),
]

Draws = Annotated[
    int | None,
    typer.Option("--draws", metavar="N", help="Draw one lane 2 to 64 times, and show the tree of answers."),
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(compare)


def compare(
    prompt: Prompt,
    lane: LaneSpecs = None,
    draws: Draws = None,
    chat: options.Chat = True,
    system: options.System = None,
    seed: options.Seed = None,
    max_new_tokens: options.MaxNewTokens = 64,
    order: options.Order = "transformers",
    top_n: options.TopN = 20,
    model: options.Model = None,
    server: options.Server = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    offline: options.Offline = False,
    trace: options.TraceFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Run several settings on one prompt, side by side.

    The first lane is the reference that the others are compared with. With --draws one lane is drawn
    many times, seed after seed.
    """
    base = Decoding(seed=seed, max_new_tokens=max_new_tokens, order=read_order(order))
    lanes = read_lanes(lane or [], base) if draws is None else read_draws(lane or [], base, draws)
    require_writable(trace)
    request = Request(prompt=read_prompt(prompt), lanes=lanes, chat=chat, system=system, top_n=top_n)
    backend = chosen_backend(server, model, device, dtype, offline)
    quietly = as_json or not output.is_terminal
    run = follow(backend, request, silent) if quietly else _painted(backend, request, many=draws is not None)
    if run.lanes:
        _report(run, as_json, many=draws is not None)
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


def read_draws(specs: list[str], base: Decoding, count: int) -> tuple[Decoding, ...]:
    """One lane `count` times, with seeds in a row; raises `InvalidSetting`."""
    if len(specs) != 1:
        raise InvalidSetting(
            f"--draws repeats one lane, and {len(specs)} are given: "
            "give --lane temperature=0.8,top_p=0.9 --draws 16 for example."
        )
    return many_draws(parse_decoding(specs[0], base), count)


def _painted(backend: Backend, request: Request, *, many: bool) -> Run:
    """Follow the run in columns that grow in place; they are cleared at the end."""
    with Live(console=output, refresh_per_second=12, transient=True, vertical_overflow="crop") as live:

        def paint(run: Run, event: Event) -> None:
            if run.lanes:
                live.update(draws_tree(run) if many else lanes_table(run, output.width))

        return follow(backend, request, paint)


def _report(run: Run, as_json: bool, *, many: bool) -> None:
    if not as_json:
        output.print(draws_tree(run) if many else lanes_table(run, output.width))
        console.print()
    longest = max(run.lanes, key=lambda lane: len(lane.steps))
    say(sentence(run, longest))
    say(draws_sentence(run) if many else _divergence(run))
    for one in run.lanes[:1] if many else run.lanes:
        whisper(f"{lane_name(one)}: {lane_details(one, run.lanes[0])}")
    whisper(f"{cache_line(run, longest)} in each lane")
    whisper(model_line(run))
    notes(run)


def _divergence(run: Run) -> str:
    step = lanes_first_divergence(run.lanes)
    if step is None:
        return "All lanes chose the same tokens from start to end."
    return f"The lanes first part at token {step + 1:,}."
