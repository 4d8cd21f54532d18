"""The race as a picture: rows are steps, columns positions, and the areas are the K/V computations.

Without the cache every step computes all positions up to its own and fills the triangle; with it only new
positions are computed, the first row and the diagonal. Counted by `core.race.work`, one head of one layer.
"""

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from playground.core.race import Race, work
from playground.core.tables import Table
from playground.views.figures.axes import axis, counts, layout, titled
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import figures_text
from playground.views.figures.palette import Palette, Theme, palette


@dataclass(frozen=True, slots=True)
class Triangle:
    """`steps` tokens chosen after a prompt of `prompt_tokens`."""

    prompt_tokens: int
    steps: int

    @property
    def last(self) -> int:
        """Positions that the last step reads."""
        return self.prompt_tokens + self.steps - 1


def triangle_of(race: Race) -> Triangle | None:
    """The steps that both sides of a race have made; None before the first."""
    steps = min((len(run.lanes[0].steps) if run.lanes else 0) for run in (race.cached, race.uncached))
    return Triangle(len(race.cached.prompt_ids), steps) if steps else None


def sentence(found: Triangle, text: Text) -> str:
    """Both counts, and the share that the cache saved; the dot products that it does not save."""
    cached, uncached = (work(found.prompt_tokens, found.steps, cached=side) for side in (True, False))
    saved = 1 - cached.kv_computed / uncached.kv_computed
    return text["triangle_counts"].format(
        cached=f"{cached.kv_computed:,}", uncached=f"{uncached.kv_computed:,}", saved=f"{figures_text(saved * 100)} %",
        needed=f"{uncached.attention_dot_products_needed:,}",
        computed=f"{uncached.attention_dot_products_computed:,}",
    )  # fmt: skip


def rows(found: Triangle) -> Table:
    """The counts of both sides."""
    sides = (("cached", True), ("uncached", False))
    counted = [(name, work(found.prompt_tokens, found.steps, cached=side)) for name, side in sides]
    return Table(
        ("side", "kv_computed", "dot_products_needed", "dot_products_computed"),
        tuple(
            (name, w.kv_computed, w.attention_dot_products_needed, w.attention_dot_products_computed)
            for name, w in counted
        ),
    )


def figure(found: Triangle, text: Text, theme: Theme) -> Any:
    """Three areas: the prompt once, the diagonal, and what is computed again without the cache."""
    colours = palette(theme)
    again = work(found.prompt_tokens, found.steps, cached=False).kv_computed - found.last
    areas = [
        (*_again(found), "bar-thin", f"{text['triangle_again']} {again:,}"),
        (*_diagonal(found), "memory", f"{text['triangle_once']} {found.steps - 1:,}"),
        (*_prompt(found), "prefill", f"{text['triangle_prompt']} {found.prompt_tokens:,}"),
    ]
    frame = layout(
        colours, 320, showlegend=True,
        xaxis=axis(colours, title=titled(text["axis_positions"], colours), range=[0, found.last])
        | counts(found.last),
        yaxis=axis(colours, title=titled(text["axis_steps"], colours), range=[found.steps, 0]) | counts(found.steps),
    )  # fmt: skip
    frame["xaxis"]["range"], frame["yaxis"]["range"] = [0, found.last], [found.steps, 0]
    return go.Figure({"data": [_area(*area, colours) for area in areas if area[0]], "layout": frame})


def _again(found: Triangle) -> tuple[list[float], list[float]]:
    """Under the first row, left of the diagonal: a staircase."""
    x: list[float] = [0]
    y: list[float] = [1]
    for step in range(1, found.steps):
        x += [found.prompt_tokens + step - 1] * 2
        y += [step, step + 1]
    return ([*x, 0], [*y, found.steps]) if found.steps > 1 else ([], [])


def _diagonal(found: Triangle) -> tuple[list[float], list[float]]:
    """One cell a step, as a band of stairs."""
    stairs = range(1, found.steps)
    right = [(found.prompt_tokens + s, y) for s in stairs for y in (s, s + 1)]
    left = [(found.prompt_tokens + s - 1, y) for s in reversed(stairs) for y in (s + 1, s)]
    corners = right + left
    return [float(x) for x, _ in corners], [float(y) for _, y in corners]


def _prompt(found: Triangle) -> tuple[list[float], list[float]]:
    return [0, found.prompt_tokens, found.prompt_tokens, 0], [0, 0, 1, 1]


def _area(x: list[float], y: list[float], colour: str, name: str, colours: Palette) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "fill": "toself", "fillcolor": colours[colour],
        "line": {"width": 0.5, "color": colours[colour], "shape": "linear"}, "name": name, "hoverinfo": "skip",
    }  # fmt: skip


TRIANGLE = Chart("triangle", sentence, rows, figure)
