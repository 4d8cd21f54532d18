"""The roofline: what a device could compute at each arithmetic intensity, and where two forwards stand.

Both axes are logarithmic. The roof is bandwidth x intensity up to the matrix rate (Williams et al. 2009).
"""

from dataclasses import dataclass
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
    notes, names = [_rate(found, xs[-1], colours)], _Names(found.device, xs, ys)
    for point in found.points:
        traces += _point(point, text, colours)
        notes.append(_name(point, names.place(point), text, colours))
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
    """What both axes show: all points and the ridge, with room around them, for a name under the lowest too."""
    intensities = [ridge_intensity(found.device), *(p.intensity for p in found.points)]
    rates = [found.device.flops_per_second, *(p.flops_per_second for p in found.points)]
    low, high, under = log10(min(rates)), log10(max(rates) * 2.5), _NAME_PIXELS[1] * 1.3 / _PLOT_PIXELS[1]
    bottom = min(low - 0.9, (low - under * high) / (1 - under))
    return (min(intensities) / 3, max(intensities) * 3), (10**bottom, 10**high)


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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a name stands by its point: the corner that is held, and how far off, in pixels."""

    xanchor: str
    xshift: int
    yshift: int


_PLACES = (
    _Place("left", 12, 7), _Place("right", -12, 7), _Place("right", 4, -11), _Place("left", -4, -11),
    _Place("right", -12, 60), _Place("left", 12, 60),
)  # fmt: skip
"""Right of the point, left of it, under it to the left and to the right, over it likewise."""

_NAME_PIXELS, _PLOT_PIXELS = (120, 52), (235, 255)
"""Of a name, and of the drawing on a phone: a name that is free there is free wherever there is more room."""


_Box = tuple[float, float, float, float]
"""Left, right, bottom and top of a name, in decades."""


class _Names:
    """Finds for each name a place that is inside the drawing, clear of the roof and of the other names."""

    def __init__(self, device: Device, xs: tuple[float, float], ys: tuple[float, float]) -> None:
        self._device = device
        self._left, self._right, self._bottom, top = (log10(end) for end in (*xs, *ys))
        self._decades_a_pixel = (
            (self._right - self._left) / _PLOT_PIXELS[0],
            (top - self._bottom) / _PLOT_PIXELS[1],
        )
        self._taken: list[_Box] = []

    def place(self, point: RooflinePoint) -> _Place:
        """The first place that is free; under the point to the left where none is."""
        boxes = {place: self._box(point, place) for place in _PLACES}
        found = next((place for place, box in boxes.items() if self._is_free(box)), _PLACES[2])
        self._taken.append(boxes[found])
        return found

    def _box(self, point: RooflinePoint, place: _Place) -> _Box:
        across, up = self._decades_a_pixel
        held, width = log10(point.intensity) + place.xshift * across, _NAME_PIXELS[0] * across
        top = log10(point.flops_per_second) + place.yshift * up
        left = held if place.xanchor == "left" else held - width
        return left, left + width, top - _NAME_PIXELS[1] * up, top

    def _is_free(self, box: _Box) -> bool:
        left, right, bottom, top = box
        inside = left >= self._left and right <= self._right and bottom >= self._bottom
        roof = log10(attainable_flops_per_second(self._device, 10**left))  # lowest at the left
        apart = all(right < a or b < left or top < c or d < bottom for a, b, c, d in self._taken)
        return inside and top < roof and apart


def _name(point: RooflinePoint, place: _Place, text: Text, colours: Palette) -> dict[str, Any]:
    share = probability_text(_rounded(point.flops_per_second / point.attainable_flops_per_second))
    words = (
        f"<b>{text['cell_' + point.name]}</b>",
        text[f"roofline_{point.name}"].format(tokens=f"{point.tokens:,}"),
        text["roofline_share"].format(share=share),
    )
    return label(
        "<br>".join(words), log10(point.intensity), log10(point.flops_per_second), _colour(point, colours),
        xanchor=place.xanchor, align=place.xanchor, yanchor="top", xshift=place.xshift, yshift=place.yshift,
    )  # fmt: skip


def _colour(point: RooflinePoint, colours: Palette) -> str:
    return colours["prefill"] if point.name == "prefill" else colours["bar"]


ROOFLINE = Chart("roofline", sentence, table, figure)
