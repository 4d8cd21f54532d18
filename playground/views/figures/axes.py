"""The frame of every plotly figure: calm axes, few ticks that carry their unit, no template, no zoom.

Attributes are those that plotly.js 3 (on the page) and 4 both know. Colours and type from `palette`.
"""

from collections.abc import Callable, Iterable
from math import ceil, floor, log10
from typing import Any

from playground.views.figures.palette import SANS, Palette

Axis = dict[str, Any]
FONT_SIZE = 12


def layout(colours: Palette, height: int, **more: Any) -> dict[str, Any]:
    """A figure's layout but for its axes; `more` is laid over it."""
    return {
        "template": "none",
        "height": height,
        "autosize": True,
        "font": {"family": SANS, "size": FONT_SIZE, "color": colours["muted"]},
        "paper_bgcolor": colours["card"],
        "plot_bgcolor": colours["card"],
        "margin": {"l": 8, "r": 22, "t": 8, "b": 8, "pad": 4},
        "dragmode": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": colours["card"], "bordercolor": colours["line"],
            "font": {"family": SANS, "size": FONT_SIZE, "color": colours["ink"]},
        },
        "showlegend": False,
        "legend": {
            "orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
            "itemclick": False, "itemdoubleclick": False, "bgcolor": "rgba(0,0,0,0)",
            "font": {"size": FONT_SIZE, "color": colours["muted"]},
        },
        **more,
    }  # fmt: skip


def axis(colours: Palette, **more: Any) -> Axis:
    """A horizontal axis: a hairline, small outside ticks, no grid."""
    return {
        "showgrid": False, "zeroline": False, "showline": True, "linecolor": colours["line"], "linewidth": 1,
        "ticks": "outside", "ticklen": 4, "tickcolor": colours["line"], "tickfont": {"color": colours["muted"]},
        "title": {"font": {"size": FONT_SIZE, "color": colours["muted"]}, "standoff": 8},
        "fixedrange": True, "automargin": True, **more,
    }  # fmt: skip


def value_axis(colours: Palette, **more: Any) -> Axis:
    """A vertical axis of values: hairlines across, no line of its own."""
    return axis(
        colours,
        **{"showgrid": True, "gridcolor": colours["line"], "showline": False, "ticks": "", **more},
    )


def titled(text: str, colours: Palette) -> dict[str, Any]:
    """An axis's title."""
    return {"text": text, "font": {"size": FONT_SIZE, "color": colours["muted"]}, "standoff": 6}


def scale(high: float, write: Callable[[float], str], count: int = 4, unit: float = 1.0) -> Axis:
    """Range and ticks of values: from 0 to a round step at or above `high`, in steps of `unit`."""
    step = round_step(high / unit / count) * unit
    values = [step * i for i in range(ceil(high / step - 1e-9) + 1)]
    words = ["0", *(write(value) for value in values[1:])]
    return {"range": [0, values[-1] * 1.02], "tickvals": values, "ticktext": words}


def counts(high: float, low: float = 0.0, count: int = 4) -> Axis:
    """Range and ticks of whole numbers: from `low` to just `high`; powers of two are cut into quarters."""
    whole = int(high)
    power_of_two = whole == high and whole >= 1024 and whole & (whole - 1) == 0
    step = whole // 4 if power_of_two else max(1.0, round_step(high / count))
    values = [step * i for i in range(int(high / step) + 1)]
    return {
        "range": [low, high * 1.015], "tickvals": values, "ticktext": [f"{value:,.0f}" for value in values]
    }  # fmt: skip


def binary_unit(high: float) -> float:
    """The power of 1,024 that bytes up to `high` are counted in."""
    power = 0
    while high >= 1024 ** (power + 1) * 0.9995 and power < 5:
        power += 1
    return float(1024**power)


def round_step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is at least `least`."""
    if least <= 0:
        return 1.0
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= least * (1 - 1e-9))


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between `low` and `high`."""
    return [10.0**power for power in range(ceil(log10(low)), floor(log10(high)) + 1)]


def label(text: str, x: float, y: float, colour: str, **more: Any) -> dict[str, Any]:
    """A word in the drawing, without an arrow."""
    return {
        "text": text, "x": x, "y": y, "showarrow": False, "font": {"color": colour, "size": FONT_SIZE},
        "xanchor": "left", "yanchor": "middle", "align": "left", **more,
    }  # fmt: skip


def line(x: Iterable[float], y: Iterable[float], colour: str, name: str, **more: Any) -> dict[str, Any]:
    """A line of two pixels."""
    return {
        "type": "scatter", "mode": "lines", "x": list(x), "y": list(y), "name": name,
        "line": {"color": colour, "width": 2, **more.pop("style", {})}, **more,
    }  # fmt: skip
