"""Prefill time against prompt length: what was measured, and its linear and quadratic part."""

from typing import Any

import plotly.graph_objects as go

from playground.core.experiment import PrefillCurve
from playground.core.fit import Curve
from playground.core.tables import table
from playground.core.units import seconds_text
from playground.views.figures.axes import axis, counts, label, layout, line, scale, titled, value_axis
from playground.views.figures.chart import Chart, Text
from playground.views.figures.palette import Palette, Theme, palette

_SAMPLES = 60


def sentence(found: PrefillCurve, text: Text) -> str:
    """How long the longest prompt took and what of it was quadratic, and where the two costs meet."""
    if not found.points:
        return text["nothing_measured"]
    last = found.points[-1]
    said = [text["prefill_took"].format(tokens=f"{last.n:,}", time=seconds_text(last.median_seconds))]
    curve = found.curve
    if curve is None or found.fitted == "too_few":
        said.append(text["prefill_too_few"])
    elif found.fitted == "separable":
        share = curve.parts(last.n)[2] / sum(curve.parts(last.n))
        said.append(text["prefill_separable"].format(share=f"{share:.0%}".replace("%", " %")))
    else:
        said.append(text["prefill_not_separable"])
    key = "prefill_crossover" if found.crossover_tokens else "prefill_no_crossover"
    crossing = f"{found.crossover_tokens or 0:,.0f}"
    said.append(text[key].format(tokens=crossing, reference=f"{found.reference_crossover_tokens:,.0f}"))
    return text["join"].join(said)


def figure(found: PrefillCurve, text: Text, theme: Theme) -> Any:
    """Points measured; lines of the fit where there is one, dashed beyond the longest prompt."""
    colours = palette(theme)
    end = _end(found)
    high = max((max(point.seconds) for point in found.points), default=1.0)
    traces = _fit(found, found.curve, end, text, colours) if found.curve else []
    if found.curve:
        high = max(high, sum(found.curve.parts(end)))
    frame = layout(
        colours, 300, showlegend=True, annotations=[], shapes=[],
        xaxis=axis(colours, title=titled(text["axis_prompt_tokens"], colours))
        | counts(end),
        yaxis=value_axis(colours) | scale(high, seconds_text),
    )  # fmt: skip
    _mark_crossover(frame, found, end, text, colours)
    return go.Figure({"data": [*traces, _points(found, text, colours)], "layout": frame})


def _end(found: PrefillCurve) -> float:
    """The measured range, and as far as was planned, but at most twice that."""
    last = found.points[-1].n if found.points else 1
    return min(max([last, *(a.n for a in found.absent if a.reason != "context")]), 2 * last)


def _points(found: PrefillCurve, text: Text, colours: Palette) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": text["measured"],
        "x": [point.n for point in found.points], "y": [point.median_seconds for point in found.points],
        "marker": {"color": colours["ink"], "size": 8, "line": {"color": colours["card"], "width": 1}},
        "text": [f"{p.n:,}: {seconds_text(p.median_seconds)}" for p in found.points], "hoverinfo": "text",
    }  # fmt: skip


def _fit(found: PrefillCurve, curve: Curve, end: float, text: Text, colours: Palette) -> list[dict[str, Any]]:
    last = found.points[-1].n
    inside = [last * i / _SAMPLES for i in range(_SAMPLES + 1)]
    total = [sum(curve.parts(n)) for n in inside]
    parts: list[tuple[str, list[float], str, dict[str, Any]]]
    parts = [(text["prefill_total"], total, colours["prefill"], {})]
    if found.fitted == "separable":
        steady = [sum(curve.parts(n)[:2]) for n in inside]
        square = [curve.parts(n)[2] for n in inside]
        parts += [
            (text["prefill_linear"], steady, colours["bar-thin"], {"width": 1.5}),
            (text["prefill_quadratic"], square, colours["prefill"], {"width": 1.5, "dash": "dot"}),
        ]
    lines = [line(inside, y, colour, name, style=style, hoverinfo="skip") for name, y, colour, style in parts]
    if end > last:
        beyond = [last + (end - last) * i / _SAMPLES for i in range(_SAMPLES + 1)]
        y = [sum(curve.parts(n)) for n in beyond]
        dashed = {"dash": "dash", "width": 1.5}
        lines.append(line(beyond, y, colours["prefill"], text["estimated"], style=dashed, hoverinfo="skip"))
    return lines


def _mark_crossover(
    frame: dict[str, Any], found: PrefillCurve, end: float, text: Text, colours: Palette
) -> None:
    crossing = found.crossover_tokens
    if not crossing or crossing > end:
        return
    frame["shapes"].append(
        {"type": "line", "x0": crossing, "x1": crossing, "yref": "paper", "y0": 0, "y1": 1,
         "line": {"color": colours["control"], "width": 1, "dash": "dot"}}
    )  # fmt: skip
    words = text["prefill_crossover_mark"].format(tokens=f"{crossing:,.0f}")
    frame["annotations"].append(
        label(words, crossing, 1, colours["muted"], yref="paper", yanchor="top", xanchor="right", xshift=-4)
    )


PREFILL = Chart("prefill", sentence, table, figure)
