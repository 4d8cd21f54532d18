"""One decode step against the number of lanes: the tokens that come of it, and the time that it takes."""

from typing import Any

import plotly.graph_objects as go

from playground.core.experiment import LaneCurve
from playground.core.tables import table
from playground.core.units import seconds_text
from playground.views.figures.axes import axis, label, layout, titled
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import figures_text
from playground.views.figures.palette import Palette, Theme, palette

_UPPER, _LOWER = [0.56, 0.9], [0.0, 0.34]


def sentence(found: LaneCurve, text: Text) -> str:
    """What the most lanes give against one, in tokens and in time."""
    if len(found.points) < 2:
        return text["nothing_measured"]
    first, last = found.points[0], found.points[-1]
    rate, most = (p.n / p.median_seconds for p in (first, last))
    return text["lanes_gain"].format(
        lanes=last.n, first=first.n, gain=figures_text(most / rate), rate=figures_text(most),
        time=figures_text(last.median_seconds / first.median_seconds), alone=figures_text(rate),
    )  # fmt: skip


def figure(found: LaneCurve, text: Text, theme: Theme) -> Any:
    """Two rows of bars over the same lanes: tokens a second above, the step's time below."""
    colours = palette(theme)
    lanes = [f"{p.n}" for p in found.points]
    rates = [p.n / p.median_seconds for p in found.points]
    times = [p.median_seconds for p in found.points]
    frame = layout(
        colours, 320, bargap=0.45, margin={"l": 4, "r": 4, "t": 4, "b": 8},
        annotations=[_heading(text["lanes_rates"], 1, colours), _heading(text["lanes_times"], 0.46, colours)],
        xaxis=axis(colours, type="category", showticklabels=False, ticks=""),
        xaxis2=axis(
            colours, type="category", anchor="y2", ticks="", title=titled(text["axis_lanes"], colours)
        ),
        yaxis=axis(colours, visible=False, domain=_UPPER, range=[0, max(rates, default=1) * 1.2]),
        yaxis2=axis(colours, visible=False, domain=_LOWER, range=[0, max(times, default=1) * 1.25]),
    )  # fmt: skip
    upper = _bars(lanes, rates, [figures_text(r) for r in rates], colours["bar"], colours)
    lower = _bars(lanes, times, [seconds_text(t) for t in times], colours["bar-thin"], colours)
    return go.Figure({"data": [upper, lower | {"xaxis": "x2", "yaxis": "y2"}], "layout": frame})


def _heading(words: str, y: float, colours: Palette) -> dict[str, Any]:
    return label(words, 0, y, colours["muted"], xref="paper", yref="paper", yanchor="top")


def _bars(x: list[str], y: list[float], words: list[str], colour: str, colours: Palette) -> dict[str, Any]:
    return {
        "type": "bar", "x": x, "y": y, "text": words, "textposition": "outside", "cliponaxis": False,
        "textfont": {"color": colours["ink"], "size": 12}, "textangle": 0, "constraintext": "none",
        "marker": {"color": colour}, "hoverinfo": "skip",
    }  # fmt: skip


LANES = Chart("lanes", sentence, table, figure)
