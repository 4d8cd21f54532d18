"""Seconds of one decode step against the context it looks back at."""

from typing import Any

import plotly.graph_objects as go

from playground.core.experiment import StepCurve, Timed
from playground.core.tables import table
from playground.core.units import bytes_text, seconds_text
from playground.views.figures.axes import axis, counts, layout, line, scale, titled, value_axis
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import figures_text
from playground.views.figures.palette import Palette, Theme, palette


def sentence(found: StepCurve, text: Text) -> str:
    """How much longer a step takes at the longest context, and what it reads there."""
    if not found.points:
        return text["nothing_measured"]
    first, last = found.points[0], found.points[-1]
    said = text["steps_grow"].format(
        first=f"{first.n:,}", last=f"{last.n:,}", least=seconds_text(first.median_seconds),
        most=seconds_text(last.median_seconds), ratio=figures_text(last.median_seconds / first.median_seconds),
    )  # fmt: skip
    if not found.costs:
        return said
    cost = found.costs[-1]
    read = text["steps_read"].format(
        cache=bytes_text(cost.cache_bytes), weights=bytes_text(cost.weight_bytes)
    )
    return text["join"].join((said, read))


def figure(found: StepCurve, text: Text, theme: Theme) -> Any:
    """Medians as points on a line, thin bars from the least to the most."""
    colours = palette(theme)
    frame = layout(
        colours, 260,
        xaxis=axis(colours, title=titled(text["axis_context_tokens"], colours))
        | counts(max((p.n for p in found.points), default=1)),
        yaxis=value_axis(colours)
        | scale(max((max(p.seconds) for p in found.points), default=1.0), seconds_text),
    )  # fmt: skip
    return go.Figure(
        {"data": [_spread(found.points, colours), _medians(found.points, colours)], "layout": frame}
    )


def _medians(points: tuple[Timed, ...], colours: Palette) -> dict[str, Any]:
    return line(
        [p.n for p in points], [p.median_seconds for p in points], colours["bar"], "", mode="lines+markers",
        marker={"size": 8, "color": colours["bar"]}, hoverinfo="text",
        text=[f"{p.n:,}: {seconds_text(p.median_seconds)}" for p in points],
    )  # fmt: skip


def _spread(points: tuple[Timed, ...], colours: Palette) -> dict[str, Any]:
    """One broken line: a stroke a place, from the least to the most measured."""
    x: list[float | None] = []
    y: list[float | None] = []
    for point in points:
        x += [point.n, point.n, None]
        y += [min(point.seconds), max(point.seconds), None]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": {"color": colours["bar-thin"], "width": 4},
    }  # fmt: skip


STEPS = Chart("steps", sentence, table, figure)
