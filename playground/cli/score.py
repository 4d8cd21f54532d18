"""`first-token score`: how probable a given text is, token by token, and what was expected instead."""

from typing import Annotated

import typer
from rich.table import Table

from playground.cli import options
from playground.cli.generate import Prompt, read_prompt
from playground.cli.running import chosen_backend, local_backend
from playground.cli.terminal import console, say, whisper, write_json, write_table
from playground.cli.tokens import piece
from playground.core.control import Control
from playground.core.decoding import InvalidSetting
from playground.core.request import Request
from playground.core.scoring import (
    Divergence,
    Scored,
    Scoring,
    divergence_report,
    mean_surprisal_bits,
    scoring_report,
)
from playground.core.units import probability_text

Text = Annotated[
    str | None,
    typer.Option("--text", metavar="TEXT", help="The continuation; without it the prompt itself is scored."),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="DTYPE", help="Also tell how far --dtype is from this one on the prompt."
    ),
]
Top = Annotated[int, typer.Option("--top", help="Most probable candidates given at each place, at most 20.")]

SHOWN_INSTEAD = 2


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(score)


def score(
    prompt: Prompt,
    text: Text = None,
    chat: options.Chat = True,
    system: options.System = None,
    top: Top = 5,
    model: options.Model = None,
    server: options.Server = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    offline: options.Offline = False,
    against: Against = None,
    as_json: options.AsJson = False,
) -> None:
    """Ask how probable a text is.

    The text is appended to the prompt as it is: a leading space counts.
    """
    if against is not None and server is not None:
        raise InvalidSetting(
            "--against loads the model a second time, which a server does not do; leave one out."
        )
    request = Request(prompt=read_prompt(prompt), chat=chat, system=system)
    backend = chosen_backend(server, model, device, dtype, offline)
    with console.status("", spinner="dots") as status:
        found = backend.score(
            request, text, top=top, control=Control(),
            progress=lambda done, total: status.update(f"[dim]Read {done:,} of {total:,} tokens[/dim]"),
        )  # fmt: skip
    if not as_json:
        write_table(table(found))
    say(sentence(found))
    where, kind = found.model.device_name or found.model.device, found.model.weights or found.model.dtype
    whisper(f"{found.model.name} · {where} · {kind}")
    for note in found.notes:
        whisper(f"Note: {note.text}")
    apart = None
    if against is not None:
        apart = backend.divergence(request, local_backend(model, device, against, offline))
        say(apart_sentence(apart))
    if as_json:
        write_json(scoring_report(found) | ({"against": divergence_report(apart)} if apart else {}))


def apart_sentence(found: Divergence) -> str:
    """`int8 against float32, 39 places of the prompt: 0.012 bits apart on average, …`"""
    names = (facts.weights or facts.dtype for facts in (found.other, found.full))
    return (
        f"{' against '.join(names)}, {found.places:,} places of the prompt: {found.mean_bits:.4f} bits apart on "
        f"average (KL), at most {found.largest_bits:.4f} after {piece(found.largest_after)}; the most probable token "
        f"is the same at {found.agreed:,}."
    )


def sentence(scoring: Scoring) -> str:
    """`2 tokens, together 0.31 %, 8.33 bits: the first of them is number 3 of what the model expects.`"""
    judged = [token for token in scoring.tokens if token.logprob is not None]
    count = f"{len(judged):,} token{'' if len(judged) == 1 else 's'}"
    mean = mean_surprisal_bits(judged)
    if scoring.text is None and mean is not None:
        return f"{count} of the prompt, {_bits(mean)} each on average."
    together = "" if len(judged) == 1 else "together "
    path = f"{together}{probability_text(scoring.probability)}, {_bits(scoring.surprisal_bits)}"
    first = judged[0].rank
    return f"{count}, {path}; {'it' if len(judged) == 1 else 'the first'} has rank {first:,}."


def table(scoring: Scoring) -> Table:
    """One row for each scored token."""
    made = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("id", "text", "probability", "rank", "surprisal", "entropy", "instead"):
        made.add_column(name, justify="left" if name in ("text", "instead") else "right")
    for token in scoring.tokens:
        made.add_row(f"{token.token.id}", piece(token.token), *_judged(token))
    return made


def _judged(token: Scored) -> tuple[str, ...]:
    if token.logprob is None or token.probability is None or token.rank is None:
        return ("", "", "", "", "nothing comes before it")
    others = [one for one in token.expected if one.token.id != token.token.id][:SHOWN_INSTEAD]
    return (
        probability_text(token.probability),
        f"{token.rank:,}",
        _bits(token.surprisal_bits),
        _bits(token.entropy_bits),
        ", ".join(f"{piece(one.token)} {probability_text(one.probability)}" for one in others),
    )


def _bits(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f} bits"
