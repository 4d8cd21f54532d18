"""`first-token bench`: speed on this machine; the suite itself is `playground.bench`."""

from typing import Annotated

import typer

from playground.cli import options
from playground.core.decoding import InvalidSetting

Rounds = Annotated[int, typer.Option("--rounds", help="Rounds that count; medians are over these.")]
Sections = Annotated[
    list[str] | None,
    typer.Option("--section", help="decode, lanes, prefill or growth; may be given again. All without it."),
]
NAMES = ("decode", "lanes", "prefill", "growth")
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
) -> None:
    """Measure speed: medians, ratios, JSON as the last line."""
    if not 1 <= rounds <= 1000 or not 2 <= tokens <= 10_000:
        raise InvalidSetting("--rounds must be from 1 to 1,000 and --tokens from 2 to 10,000.")
    unknown = [name for name in section or () if name not in NAMES]
    if unknown:
        raise InvalidSetting(f"--section must be one of {', '.join(NAMES)}, not {unknown[0]!r}.")
    from playground.bench import main

    main(model, device, dtype, rounds, tokens, section or ())
