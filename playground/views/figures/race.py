"""The step times of a race, with the cache and without, as a figure with its table.

The live picture and the triangle of what was computed are drawn in the browser.
"""

from typing import Any

import plotly.graph_objects as go

from playground.core.metrics import timing
from playground.core.race import Race, result
from playground.core.tables import Table
from playground.core.units import seconds_text
from playground.views.figures.axes import axis, counts, layout, line, scale, titled, value_axis
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import figures_text
from playground.views.figures.palette import Theme, palette


def step_seconds(race: Race) -> tuple[list[float], list[float]]:
    """Seconds of the decode steps, with the cache and without."""
    runs = (race.cached, race.uncached)
    with_cache, without = (timing(run, run.lanes[0]).step_seconds if run.lanes else [] for run in runs)
    return with_cache, without


def sentence(found: Race, text: Text) -> str:
    """The last steps of both, and all of them together."""
    cached, uncached = step_seconds(found)
    if not cached or not uncached:
        return text["nothing_measured"]
    steps = min(len(cached), len(uncached))
    whole, other = sum(cached[:steps]), sum(uncached[:steps])
    said = text["race_steps"].format(
        steps=f"{steps:,}", cached=seconds_text(whole), uncached=seconds_text(other),
        ratio=figures_text(other / whole), first=seconds_text(_middle(uncached[: steps // 4 + 1])),
        last=seconds_text(_middle(uncached[:steps][-(steps // 4 + 1) :])),
        flat=seconds_text(_middle(cached[:steps])),
    )  # fmt: skip
    return text["join"].join((said, _tokens(found, text)))


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _tokens(found: Race, text: Text) -> str:
    raced = found.raced or result(found)
    if raced.tokens_equal is None:
        return text["race_not_compared"]
    if raced.tokens_equal:
        return text["race_equal"].format(steps=f"{raced.compared_steps:,}")
    return text["race_parted"].format(step=f"{(raced.first_divergence or 0) + 1:,}")


def rows(found: Race) -> Table:
    """One row a decode step."""
    cached, uncached = step_seconds(found)
    prompt = len(found.cached.prompt_ids)
    longest = max(len(cached), len(uncached))
    return Table(
        ("step", "positions", "cached_seconds", "uncached_seconds", "tokens_equal"),
        tuple(
            (i + 1, prompt + i + 1, _at(cached, i), _at(uncached, i), _equal(found, i + 1))
            for i in range(longest)
        ),
    )


def _at(values: list[float], index: int) -> float | None:
    return values[index] if index < len(values) else None


def _equal(found: Race, step: int) -> str | None:
    known = {tick.step: tick.equal for tick in found.ticks}.get(step)
    return None if known is None else "yes" if known else "no"


def figure(found: Race, text: Text, theme: Theme) -> Any:
    """Two lines over the same steps: flat with the cache, rising without."""
    colours = palette(theme)
    cached, uncached = step_seconds(found)
    last = max(len(cached), len(uncached), 1)
    lines = [
        line(range(1, len(times) + 1), times, colours[colour], text[key], style={"dash": dash},
             text=[f"{i + 1}: {seconds_text(t)}" for i, t in enumerate(times)], hoverinfo="text")
        for key, times, colour, dash in (
            ("race_without", uncached, "bar-thin", "solid"), ("race_with", cached, "memory", "solid"),
        )
    ]  # fmt: skip
    frame = layout(
        colours, 260, showlegend=True,
        xaxis=axis(colours, title=titled(text["axis_steps"], colours)) | counts(last, 1),
        yaxis=value_axis(colours) | scale(_high(cached + uncached), seconds_text),
    )  # fmt: skip
    return go.Figure({"data": lines, "layout": frame})


def _high(values: list[float]) -> float:
    """Nearly all of them: one slow step does not flatten the rest."""
    ordered = sorted(values)
    return min(ordered[-1], 2 * ordered[int(0.98 * (len(ordered) - 1))]) if ordered else 1.0


RACE_STEPS = Chart("race_steps", sentence, rows, figure)
