"""`first-token kv`: the KV cache of a config, by arithmetic; needs no model and no torch."""

from typing import Annotated, Any

import typer
from rich.table import Table

from playground import catalog
from playground.cli import options
from playground.cli.terminal import one_line, output, say, whisper, write_json, write_table
from playground.core.decoding import InvalidSetting
from playground.core.kv import DTYPE_BYTES
from playground.core.sizing import kv_report
from playground.core.units import bytes_text

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


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command()(kv)


def kv(
    config: Config,
    tokens: Tokens = 4096,
    sequences: Sequences = 1,
    dtype: KvDtype = "auto",
    as_json: options.AsJson = False,
) -> None:
    """Compute how large the KV cache of a config is."""
    if dtype != "auto" and dtype not in DTYPE_BYTES:
        raise InvalidSetting(f"--dtype must be auto or one of {', '.join(DTYPE_BYTES)}, not {dtype!r}.")
    found = catalog.kv_config(config)
    report = kv_report(found, tokens, sequences, None if dtype == "auto" else dtype)
    if as_json:
        write_json(report)
    else:
        _print(config, report)


def _print(name: str, report: dict[str, Any]) -> None:
    whose = f"{report['tokens']:,} tokens"
    if report["sequences"] > 1:
        whose = f"{report['sequences']:,} sequences of {whose}"
    output.print(
        f"[bold]{bytes_text(report['used_bytes'])}[/bold] of KV cache for {whose}, computed from "
        f"{one_line(name)} in {report['dtype']}.", markup=True,
    )  # fmt: skip
    output.print()
    write_table(_layers(report))
    output.print()
    write_table(_totals(report))
    context = report["context"]
    if context is not None and report["tokens"] > context:
        say(f"The config names a context of {context:,} tokens; {report['tokens']:,} is beyond it.")
    if report["allocated_bytes"] != report["used_bytes"]:
        whisper("allocated: what an engine reserves that does not make use of windows.")


def _layers(report: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("layers", justify="right")
    table.add_column("attention")
    for heading in ("KV heads", "head dim", "bytes a token and layer"):
        table.add_column(heading, justify="right")
    for layer in report["layers"]:
        kind = layer["kind"] if layer["window"] is None else f"{layer['kind']}, window {layer['window']:,}"
        table.add_row(
            f"{layer['count']:,}", kind, f"{layer['kv_heads']:,}", f"{layer['head_dim']:,}",
            f"{layer['bytes_per_token']:,}",
        )  # fmt: skip
    return table


def _totals(report: dict[str, Any]) -> Table:
    rows = [
        ("one token, all layers", report["bytes_per_token"]),
        ("used", report["used_bytes"]),
        ("allocated", report["allocated_bytes"]),
        (f"if multi-head ({report['query_heads']} KV heads)", report["if_mha_bytes"]),
        ("if multi-query (1 KV head)", report["if_mqa_bytes"]),
        ("weights, for comparison", report["weights_bytes"]),
    ]
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right", style="bold")
    table.add_column(justify="right", style="dim")
    for name, count in rows:
        if count is not None:
            table.add_row(name, bytes_text(count), f"{count:,} bytes")
    return table
