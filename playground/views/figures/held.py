"""What the caches of a run hold, by kind of layer: one bar a kind, outlined what is set aside behind them.

The bytes of a kind are computed from the shape; the sums of all are measured (`core.holding`).
"""

from typing import Any

from playground.core.holding import Holding, KindOfLayer
from playground.core.tables import Table
from playground.core.units import bytes_text
from playground.views.figures.chart import Chart, Text
from playground.views.figures.palette import Palette, Theme, palette
from playground.views.figures.rows_of_bars import Bar, bars


def sentence(found: Holding, text: Text) -> str:
    """The measured bytes, whether they are as computed, and which kinds hold them."""
    if not found.tokens:
        return text["held_nothing"]
    said = [
        text["held_measured" if found.used_bytes is not None else "held_computed"].format(
            tokens=f"{found.tokens:,}", used=bytes_text(_first_known(found.used_bytes, found.predicted_bytes)),
        )
    ]  # fmt: skip
    if found.equal is not None:
        said.append(text["held_equal" if found.equal else "held_other"].format(
            predicted=bytes_text(found.predicted_bytes)
        ))  # fmt: skip
    if found.allocated_bytes is not None and found.allocated_bytes != found.used_bytes:
        said.append(text["held_allocated"].format(allocated=bytes_text(found.allocated_bytes)))
    return text["join"].join(said)


def rows(found: Holding) -> Table:
    """One row a kind of layer, then the sums."""
    header = ("layer_kind", "layers", "window", "used_bytes", "state_bytes", "origin")
    kinds = [(k.kind, k.count, k.window, k.used_bytes, k.state_bytes, "computed") for k in found.kinds]
    return Table(
        header,
        (
            *kinds,
            ("total", None, None, found.predicted_bytes, found.predicted_state_bytes, "computed"),
            ("total", None, None, found.used_bytes, found.state_bytes, "measured"),
            ("allocated", None, None, found.allocated_bytes, None, "measured"),
        ),
    )


def figure(found: Holding, text: Text, theme: Theme) -> Any:
    """A bar a kind; states have their own, and the allocated bytes are outlined where they are more."""
    colours = palette(theme)
    drawn = [bar for kind in found.kinds for bar in _bars(kind, text, colours)]
    if found.allocated_bytes and found.allocated_bytes != found.used_bytes:
        words = text["held_part"].format(name=text["allocated"], origin=text["cell_measured"])
        drawn.append(
            Bar(
                words, bytes_text(found.allocated_bytes), found.allocated_bytes, colours["memory"], ghost=True
            )
        )
    return bars(drawn, colours)


def _bars(kind: KindOfLayer, text: Text, colours: Palette) -> list[Bar]:
    name = text.get("cell_" + kind.kind.replace(" + ", "_").replace("-", "_"), kind.kind)
    of = f"{kind.count} × {name}"
    if kind.window:
        of = text["held_window"].format(layers=of, window=f"{kind.window:,}")
    shown = []
    if kind.used_bytes or not kind.state_bytes:
        shown.append(Bar(of, bytes_text(kind.used_bytes), kind.used_bytes, colours["memory"]))
    if kind.state_bytes:
        words = text["held_part"].format(name=of, origin=text["state"])
        shown.append(Bar(words, bytes_text(kind.state_bytes), kind.state_bytes, colours["bar-thin"]))
    return shown


def _first_known(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


HELD = Chart("held", sentence, rows, figure)
