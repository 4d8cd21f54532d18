"""`first-token bench`: speed on this machine; the suite itself is `playground.bench`."""

from typing import Annotated

import typer

from playground.cli import options
from playground.core.decoding import InvalidSetting

Rounds = Annotated[int, typer.Option("--rounds", help="Rounds that count; medians are over these.")]
Sections = Annotated[
    list[str] | None,
    typer.Option("--section", help="decode, lanes, prefill, growth, int8 or llamacpp; may be given again."),
]
NAMES = ("decode", "lanes", "prefill", "growth", "int8", "llamacpp")
Against = Annotated[
    str, typer.Option("--against", metavar="PEERS", help="generate, llamacpp, or both with a comma.")
]
RandomInit = Annotated[
    str | None,
    typer.Option(
        "--random-init", metavar="CONFIG",
        help="A model of this shape with weights drawn: a config.json, or a name like llama-3.1-8b.",
    ),
]  # fmt: skip
PEERS = ("generate", "llamacpp")
Tokens = Annotated[int, typer.Option("--tokens", help="New tokens of each run.")]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(bench)


def bench(
    model: options.Model = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    rounds: Rounds = 5,
    tokens: Tokens = 48,
    section: Sections = None,
    against: Against = "generate",
    random_init: RandomInit = None,
) -> None:
    """Measure speed: medians, ratios, JSON as the last line.

    Sections that are named are measured, whoever they are against.
    """
    if not 1 <= rounds <= 1000 or not 2 <= tokens <= 10_000:
        raise InvalidSetting("--rounds must be from 1 to 1,000 and --tokens from 2 to 10,000.")
    unknown = [name for name in section or () if name not in NAMES]
    if unknown:
        raise InvalidSetting(f"--section must be one of {', '.join(NAMES)}, not {unknown[0]!r}.")
    peers = [peer.strip() for peer in against.split(",")]
    strange = [peer for peer in peers if peer not in PEERS]
    if strange:
        raise InvalidSetting(
            f"--against must be one of {', '.join(PEERS)}, or both, not {strange[0][:40]!r}."
        )
    if random_init is not None and model is not None:
        raise InvalidSetting("--random-init draws a model of its own; leave --model out, or the other.")
    from playground.bench import main
    from playground.bench.sections import PEERS as MEASURED

    sections = section or [name for peer in peers for name in MEASURED[peer]]
    main(model, device, dtype, rounds, tokens, sections, random_init)
