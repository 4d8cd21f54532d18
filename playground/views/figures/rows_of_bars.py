"""Horizontal bars, each under its own words: reads the same at any width, a phone's too.

The words above a bar say name and quantity, so that no axis is needed; what is not real is an outline.
"""

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from playground.views.figures.axes import axis, label, layout
from playground.views.figures.palette import Palette

ROW_PIXELS = 46
_THICK, _THIN = 0.28, 0.12


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: its words, a bold quantity after them, a length, its colour; `ghost` is only outlined.

    `beside` is a second length, a thin outline under the bar: what was predicted of something measured. The
    `remark` stands after the quantity.
    """

    words: str
    quantity: str
    length: float
    colour: str
    ghost: bool = False
    beside: float | None = None
    remark: str = ""


def bars(rows: list[Bar], colours: Palette) -> Any:
    """A figure of `rows`, the first on top."""
    places = list(range(len(rows), 0, -1))
    longest = max((max(row.length, row.beside or 0) for row in rows), default=1.0) or 1.0
    notes = [_words(row, place, colours) for row, place in zip(rows, places, strict=True)]
    frame = layout(
        colours, 16 + ROW_PIXELS * len(rows), annotations=notes, barmode="overlay",
        margin={"l": 1, "r": 8, "t": 4, "b": 4},
        xaxis=axis(colours, visible=False, range=[0, longest]),
        yaxis=axis(colours, visible=False, range=[0.6, len(rows) + 0.9]),
    )  # fmt: skip
    pairs = [(row, place) for row, place in zip(rows, places, strict=True) if row.beside is not None]
    traces = [
        _bars([(row.length, place, row) for row, place in zip(rows, places, strict=True)], _THICK, colours),
        _bars([(row.beside or 0, place - (_THICK + _THIN) / 2 - 0.02, row) for row, place in pairs], _THIN, colours,
              outlined=True),
    ]  # fmt: skip
    return go.Figure({"data": traces[: 1 + bool(pairs)], "layout": frame})


def _bars(
    drawn: list[tuple[float, float, Bar]], width: float, colours: Palette, outlined: bool = False
) -> dict[str, Any]:
    ghosts = [outlined or row.ghost for _, _, row in drawn]
    edge = [row.colour for _, _, row in drawn]
    return {
        "type": "bar", "orientation": "h", "x": [x for x, _, _ in drawn], "y": [y for _, y, _ in drawn],
        "width": [width] * len(drawn), "hoverinfo": "skip",
        "marker": {
            "color": [colours["card"] if ghost else c for ghost, c in zip(ghosts, edge, strict=True)],
            "line": {"color": edge, "width": [(1 if outlined else 1.5) if ghost else 0 for ghost in ghosts]},
        },
    }  # fmt: skip


def _words(row: Bar, place: int, colours: Palette) -> dict[str, Any]:
    remark = f" {row.remark}" if row.remark else ""
    return label(
        f"{row.words} <b>{row.quantity}</b>{remark}", 0, place, colours["ink"], yshift=17, xshift=-2,
    )  # fmt: skip
