"""The roofline: what a device could compute at each arithmetic intensity, and where two forwards stand.

Both axes are logarithmic. The roof is bandwidth x intensity up to the matrix rate (Williams et al. 2009).
"""

from math import log10
from typing import Any

import plotly.graph_objects as go

from playground.core.cost import Device, attainable_flops_per_second, ridge_intensity
from playground.core.experiment import Roofline, RooflinePoint
from playground.core.tables import table
from playground.core.units import probability_text
from playground.views.figures.axes import axis, decades, label, layout, line, titled, value_axis
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import figures_text, power_text
from playground.views.figures.palette import Palette, Theme, palette


def sentence(found: Roofline, text: Text) -> str:
    """What each forward waits for, and how near it comes to the roof."""
    if not found.points:
        return text["nothing_measured"]
    said = [_said(point, text) for point in found.points]
    key = "roofline_device" if found.device.measured else "roofline_device_read"
    device = text[key].format(
        bandwidth=power_text(found.device.bytes_per_second, "B/s"),
        rate=power_text(found.device.flops_per_second, "FLOP/s"),
    )
    return text["join"].join((*said, device))


def figure(found: Roofline, text: Text, theme: Theme) -> Any:
    """The roof as a line; each forward a point under it, a dotted line up to what the roof allows."""
    colours = palette(theme)
    xs, ys = _bounds(found)
    roof = [xs[0], ridge_intensity(found.device), xs[-1]]
    traces = [_roof(found.device, roof, colours)]
    notes = [_rate(found, xs[-1], colours)]
    for point in found.points:
        traces += _point(point, text, colours)
        notes.append(_name(point, xs, text, colours))
    frame = layout(
        colours, 340, annotations=notes,
        xaxis=_logarithmic(axis(colours), xs, figures_text) | {
            "title": titled(text["axis_intensity"], colours)
        },
        yaxis=_logarithmic(value_axis(colours), ys, lambda v: power_text(v, "FLOP/s")),
    )  # fmt: skip
    return go.Figure({"data": traces, "layout": frame})


def _said(point: RooflinePoint, text: Text) -> str:
    verdict = point.verdict
    nearest = max(verdict.bandwidth_share, verdict.compute_share)
    return text[f"roofline_{point.name}_{verdict.limit}"].format(share=probability_text(_rounded(nearest)))


def _rounded(share: float) -> float:
    return round(share, 2) if share >= 0.1 else share


def _bounds(found: Roofline) -> tuple[tuple[float, float], tuple[float, float]]:
    """What both axes show: all points and the ridge, with room around them."""
    intensities = [ridge_intensity(found.device), *(p.intensity for p in found.points)]
    rates = [found.device.flops_per_second, *(p.flops_per_second for p in found.points)]
    return (min(intensities) / 3, max(intensities) * 3), (min(rates) / 8, max(rates) * 2.5)


def _logarithmic(of: dict[str, Any], ends: tuple[float, float], write: Any) -> dict[str, Any]:
    values = decades(*ends)
    return of | {
        "type": "log", "range": [log10(end) for end in ends], "tickvals": values,
        "ticktext": [write(v) for v in values],
    }  # fmt: skip


def _roof(device: Device, at: list[float], colours: Palette) -> dict[str, Any]:
    heights = [attainable_flops_per_second(device, x) for x in at]
    return line(at, heights, colours["ink"], "", hoverinfo="skip")


def _rate(found: Roofline, end: float, colours: Palette) -> dict[str, Any]:
    """The matrix rate, written on the roof's level part."""
    rate = found.device.flops_per_second
    words = power_text(rate, "FLOP/s")
    return label(words, log10(end), log10(rate), colours["muted"], xanchor="right", yshift=10)


def _point(point: RooflinePoint, text: Text, colours: Palette) -> list[dict[str, Any]]:
    colour = _colour(point, colours)
    up = line(
        [point.intensity, point.intensity], [point.flops_per_second, point.attainable_flops_per_second], colour,
        "", style={"width": 1.5, "dash": "dot"}, hoverinfo="skip",
    )  # fmt: skip
    hover = f"{power_text(point.flops_per_second, 'FLOP/s')}, {figures_text(point.intensity)} FLOP/B"
    dot = {
        "type": "scatter", "mode": "markers", "x": [point.intensity], "y": [point.flops_per_second],
        "marker": {
            "size": 12, "color": colour, "symbol": "circle" if point.name == "prefill" else "diamond",
            "line": {"color": colours["card"], "width": 1.5},
        },
        "text": [hover], "hoverinfo": "text",
    }  # fmt: skip
    return [up, dot]


def _name(point: RooflinePoint, xs: tuple[float, float], text: Text, colours: Palette) -> dict[str, Any]:
    """Beside the point, on the side where there is room."""
    left = log10(point.intensity) > (log10(xs[0]) + log10(xs[-1])) / 2
    share = probability_text(_rounded(point.flops_per_second / point.attainable_flops_per_second))
    words = (
        f"<b>{text['cell_' + point.name]}</b>",
        text[f"roofline_{point.name}"].format(tokens=f"{point.tokens:,}"),
        text["roofline_share"].format(share=share),
    )
    side = "right" if left else "left"
    return label(
        "<br>".join(words), log10(point.intensity), log10(point.flops_per_second), _colour(point, colours),
        xanchor=side, align=side, yanchor="top", xshift=-4 if left else 12, yshift=-9 if left else 7,
    )  # fmt: skip


def _colour(point: RooflinePoint, colours: Palette) -> str:
    return colours["prefill"] if point.name == "prefill" else colours["bar"]


ROOFLINE = Chart("roofline", sentence, table, figure)
