"""Horizontal bars, each under its own words: reads the same at any width, a phone's too.

The words above a bar say name and quantity, so that no axis is needed; what is not real is an outline.
"""

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from playground.views.figures.axes import axis, label, layout
from playground.views.figures.palette import Palette

ROW_PIXELS = 46


@dataclass(frozen=True, slots=True)
class Bar:
    """One row: its words, a bold quantity after them, a length, its colour; `ghost` is only outlined."""

    words: str
    quantity: str
    length: float
    colour: str
    ghost: bool = False


def bars(rows: list[Bar], colours: Palette) -> Any:
    """A figure of `rows`, the first on top."""
    places = list(range(len(rows), 0, -1))
    longest = max((row.length for row in rows), default=1.0) or 1.0
    notes = [_words(row, place, colours) for row, place in zip(rows, places, strict=True)]
    frame = layout(
        colours, 16 + ROW_PIXELS * len(rows), annotations=notes, bargap=0.72, margin={"l": 1, "r": 8, "t": 4, "b": 4},
        xaxis=axis(colours, visible=False, range=[0, longest]),
        yaxis=axis(colours, visible=False, range=[0.6, len(rows) + 0.9]),
    )  # fmt: skip
    trace = {
        "type": "bar", "orientation": "h", "x": [row.length for row in rows], "y": places, "hoverinfo": "skip",
        "marker": {
            "color": [colours["card"] if row.ghost else row.colour for row in rows],
            "line": {"color": [row.colour for row in rows], "width": [1.5 if row.ghost else 0 for row in rows]},
        },
    }  # fmt: skip
    return go.Figure({"data": [trace], "layout": frame})


def _words(row: Bar, place: int, colours: Palette) -> dict[str, Any]:
    return label(
        f"{row.words} <b>{row.quantity}</b>", 0, place, colours["ink"], yshift=17, xshift=-2,
    )  # fmt: skip
