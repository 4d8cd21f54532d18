"""`first-token kv`: the KV cache of a config, by arithmetic; needs no model and no torch."""

from collections import Counter
from typing import Annotated, Any

import typer
from rich.table import Table

from playground import catalog
from playground.cli import options
from playground.cli.terminal import output, say, whisper, write_json, write_table
from playground.core.decoding import InvalidSetting
from playground.core.formats import FORMATS
from playground.core.printable import one_line
from playground.core.sizing import kv_report
from playground.core.units import bytes_text, bytes_texts

Config = Annotated[
    str, typer.Argument(metavar="CONFIG", help="A config.json or its folder, a catalog name, or a Hub id.")
]
Tokens = Annotated[int, typer.Option("--tokens", help="Tokens of each sequence.")]
Sequences = Annotated[int, typer.Option("--sequences", help="Sequences held at once.")]
KvDtype = Annotated[
    str,
    typer.Option(
        "--dtype", help="Of the cache and of the weights: auto (the config's own), float32, int8 ..."
    ),
]


WeightsDtype = Annotated[
    str, typer.Option("--weights-dtype", help="Of the weights alone; auto is the cache's.")
]
Accelerator = Annotated[
    str | None, typer.Option("--accelerator", help="Hold it against this memory: h100-sxm, rtx-4090 ...")
]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(kv)


def kv(
    config: Config,
    tokens: Tokens = 4096,
    sequences: Sequences = 1,
    dtype: KvDtype = "auto",
    weights_dtype: WeightsDtype = "auto",
    accelerator: Accelerator = None,
    as_json: options.AsJson = False,
) -> None:
    """Compute how large the KV cache of a config is."""
    device = None if accelerator is None else catalog.accelerator(accelerator)
    known = catalog.config(config)
    report = kv_report(
        catalog.kv_config(config), tokens, sequences,
        _format("--dtype", dtype), _format("--weights-dtype", weights_dtype),
        parameters=known.parameters if known else None, memory_bytes=device.memory_bytes if device else None,
    )  # fmt: skip
    if as_json:
        write_json(report)
    else:
        _print(known.title if known else config, report)
        if device is not None:
            _print_fit(device.title, report)
        if known is not None:
            whisper(f"read in {known.source}")


def _format(option: str, name: str) -> str | None:
    if name == "auto":
        return None
    if name not in FORMATS:
        raise InvalidSetting(f"{option} must be auto or one of {', '.join(FORMATS)}, not {name!r}.")
    return name


def _print(name: str, report: dict[str, Any]) -> None:
    whose = f"{report['tokens']:,} tokens"
    if report["sequences"] > 1:
        whose = f"{report['sequences']:,} sequences of {whose}"
    output.print(
        f"[bold]{bytes_text(report['used_bytes'])}[/bold] of KV cache for {whose}, computed from "
        f"{one_line(name)} in {report['dtype']}{_overhead(report)}.", markup=True,
    )  # fmt: skip
    output.print()
    write_table(_layers(report))
    output.print()
    write_table(_totals(report))
    context = report["context"]
    if context is not None and report["tokens"] > context:
        say(f"The config names a context of {context:,} tokens; {report['tokens']:,} is beyond it.")
    if report["state_bytes"]:
        whisper("constant state: what some layers keep instead of keys and values, the same at any length.")
    if report["allocated_bytes"] != report["used_bytes"]:
        whisper("allocated: what an engine reserves that does not make use of windows.")


def _overhead(report: dict[str, Any]) -> str:
    """What a number takes with its share of scale and zero, where groups have these."""
    form = FORMATS[report["dtype"]]
    return f" ({report['bits_per_number']:g} bits a number with scales)" if form.group else ""


def _print_fit(device: str, report: dict[str, Any]) -> None:
    """Whether it fits, and the most that does; activations are an estimate."""
    fit = report["fit"]
    if fit["fits"] is None:
        say(f"What fits on {device} cannot be told: the parameters of this family are not counted here.")
        return
    total, memory = bytes_texts(fit["total_bytes"], fit["memory_bytes"])
    said = f"{total} of {memory}: it {'fits' if fit['fits'] else 'does not fit'} on {device}"
    estimate = bytes_text(report["activation_bytes_estimated"])
    most = ", ".join(
        text if count is None else f"{count:,} {name}"
        for name, count, text in (
            (
                f"sequences of {report['tokens']:,} tokens",
                fit["largest_sequences"],
                "any number of sequences",
            ),
            (f"tokens for {report['sequences']:,} sequences", fit["largest_tokens"], "any number of tokens"),
        )
    )
    say(f"{said} (weights, cache and an estimated {estimate} of activations); at most {most}.")


def _layers(report: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("layers", justify="right")
    table.add_column("kind")
    headings = ["KV heads", "head dim", "bytes a token and layer"]
    if report["state_bytes"]:
        headings.append("constant bytes a layer")
    for heading in headings:
        table.add_column(heading, justify="right")
    alike: Counter[tuple[str, ...]] = Counter()
    for layer in report["layers"]:
        kind = layer["kind"] if layer["window"] is None else f"{layer['kind']}, window {layer['window']:,}"
        counts = (layer[name] for name in ("kv_heads", "head_dim", "bytes_per_token", "state_bytes"))
        alike[kind, *(f"{value:,}" if value else "-" for value in counts)] += layer["count"]
    for cells, count in alike.items():
        table.add_row(f"{count:,}", *cells[: len(headings) + 1])
    return table


_GHOSTS = {"mla": "if latent, as in DeepSeek-V2", "windowed": "if windowed, as in Gemma 3"}


def _totals(report: dict[str, Any]) -> Table:
    token = report["token"] or {}
    rows = [
        ("one key of one head" if token.get("value_bytes") else "one latent", token.get("key_bytes")),
        ("key and value of one head", token["head_bytes"] if token.get("value_bytes") else None),
        ("one token, one layer", token.get("layer_bytes")),
        ("one token, all layers", report["bytes_per_token"]),
        ("used", report["used_bytes"]),
        ("allocated", report["allocated_bytes"]),
        ("constant state, beside it", report["state_bytes"] or None),
        (f"if multi-head ({report['query_heads']} KV heads)", report["if_mha_bytes"]),
        ("if multi-query (1 KV head)", report["if_mqa_bytes"]),
        *(
            (_GHOSTS[g["name"]], g["used_bytes"])
            for g in report["ghosts"]
            if g["name"] in _GHOSTS and not g["real"]
        ),
        (f"weights, for comparison, {report['weights_dtype']}", report["weights_bytes"]),
    ]
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right", style="dim")
    for name, count in rows:
        if count is not None:
            table.add_row(name, bytes_text(count), f"{count:,} bytes")
    return table
