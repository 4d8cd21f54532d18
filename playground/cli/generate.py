"""`first-token generate`: one answer, streamed to the terminal while it is made."""

import sys
from typing import Annotated

import typer

from playground.cli import options
from playground.cli.running import (
    chosen_backend,
    conclude,
    follow,
    notes,
    prefill_line,
    require_writable,
    silent,
)
from playground.cli.summary import details, model_line, sentence
from playground.cli.terminal import say, whisper, write_json, write_text
from playground.core.decoding import chosen_decoding, validated
from playground.core.events import Event
from playground.core.report import generation
from playground.core.request import Request
from playground.core.run import Run
from playground.core.stages import read_order

Prompt = Annotated[str, typer.Argument(metavar="PROMPT", help="The prompt, or - to read it from stdin.")]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy", help="greedy or sample. Default: greedy, sample where a sampling option is given."
    ),
]
Temperature = Annotated[
    float | None, typer.Option("--temperature", help="Below 1 sharpens, above 1 flattens, 0 is greedy. [0.7]")
]
TopK = Annotated[int | None, typer.Option("--top-k", help="Keep the K most probable tokens; 0 is off. [0]")]
TopP = Annotated[
    float | None, typer.Option("--top-p", help="Keep the smallest set with this probability; 1 is off. [0.9]")
]
MinP = Annotated[
    float | None,
    typer.Option("--min-p", help="Keep what is this share as probable as the best; 0 is off. [0]"),
]
TypicalP = Annotated[
    float | None,
    typer.Option(
        "--typical-p", help="Keep what is as surprising as expected, up to this share; 1 is off. [1]"
    ),
]
Penalty = Annotated[
    float, typer.Option("--repetition-penalty", help="Above 1 makes tokens seen before less likely.")
]
PenaltyScope = Annotated[
    str,
    typer.Option("--penalty-scope", help="What the penalty looks at: all, or output for the answer only."),
]
Stop = Annotated[list[str] | None, typer.Option("--stop", metavar="TEXT", help="End before it; repeatable.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(generate)


def generate(
    prompt: Prompt,
    chat: options.Chat = True,
    system: options.System = None,
    strategy: Strategy = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    typical_p: TypicalP = None,
    repetition_penalty: Penalty = 1.0,
    penalty_scope: PenaltyScope = "all",
    order: options.Order = "transformers",
    seed: options.Seed = None,
    max_new_tokens: options.MaxNewTokens = 64,
    stop: Stop = None,
    top_n: options.TopN = 20,
    model: options.Model = None,
    server: options.Server = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    offline: options.Offline = False,
    trace: options.TraceFile = None,
    as_json: options.AsJson = False,
) -> int:
    """Stream one answer to the terminal.

    Ctrl-C ends the run after the step in hand; what was made so far is kept and reported.
    """
    sampling = {
        "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "typical_p": typical_p,
    }  # fmt: skip
    decoding = validated(
        chosen_decoding(
            strategy, sampling, repetition_penalty=repetition_penalty, penalty_scope=penalty_scope,
            order=read_order(order), seed=seed, max_new_tokens=max_new_tokens, stop=tuple(stop or ()),
        )
    )  # fmt: skip
    require_writable(trace)
    request = Request(prompt=read_prompt(prompt), lanes=(decoding,), chat=chat, system=system, top_n=top_n)
    run = follow(
        chosen_backend(server, model, device, dtype, offline), request, silent if as_json else _Writer()
    )
    if run.lanes:
        _report(run, as_json)
    if as_json:
        write_json(generation(run))
    return conclude(run, trace)


def read_prompt(prompt: str) -> str:
    """The argument, or all of stdin for `-`; bytes that are no UTF-8 are refused further down."""
    if prompt != "-":
        return prompt
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _report(run: Run, as_json: bool) -> None:
    lane = run.lanes[0]
    if not as_json and lane.steps:
        write_text("\n")
    say(sentence(run, lane))
    whisper(details(run, lane))
    whisper(model_line(run))
    notes(run)


class _Writer:
    """Writes what a run's text has grown by, and a line while a long prompt is read."""

    def __init__(self) -> None:
        self._written = 0
        self._prefill = prefill_line()

    def __call__(self, run: Run, event: Event) -> None:
        self._prefill(run, event)
        text = run.lanes[0].text if run.lanes else ""
        if len(text) > self._written:
            write_text(text[self._written :])
            self._written = len(text)
