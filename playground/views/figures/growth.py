"""A cache's bytes against tokens: windows stop growing in use, an engine that ignores them does not."""

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from playground.core.kv import CacheSpec
from playground.core.tables import Table
from playground.core.units import bytes_text
from playground.views.figures.axes import axis, binary_unit, counts, layout, line, scale, titled, value_axis
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import amount
from playground.views.figures.palette import Theme, palette

_PLACES = 16


@dataclass(frozen=True, slots=True)
class Growth:
    """The cache of `sequences` sequences of a model, up to `tokens` each."""

    name: str
    cache: CacheSpec
    tokens: int
    sequences: int = 1

    def windows(self) -> list[int]:
        """Lengths at which layers stop growing, within the figure."""
        return sorted({x.window for x in self.cache.layers if x.window and x.window < self.tokens})

    def places(self) -> list[int]:
        """Token counts of the table and of the line's corners."""
        even = {max(1, self.tokens * i // _PLACES) for i in range(1, _PLACES + 1)}
        return sorted(even | {1, self.tokens, *self.windows()})


def sentence(found: Growth, text: Text) -> str:
    """The bytes at the end, what a token adds there, and which layers have stopped."""
    cache, tokens = found.cache, found.tokens
    said = [
        text["growth_holds"].format(
            model=found.name, amount=amount(tokens, found.sequences, text),
            used=bytes_text(cache.used_bytes(tokens, found.sequences)),
        )
    ]  # fmt: skip
    stopped = sum(1 for layer in cache.layers if layer.window and layer.window < tokens)
    last = cache.used_bytes(tokens + 1) - cache.used_bytes(tokens)
    if stopped:
        said.append(
            text["growth_windows"].format(
                stopped=stopped, layers=len(cache.layers), first=bytes_text(cache.bytes_per_token),
                last=bytes_text(last), window=", ".join(f"{w:,}" for w in found.windows()),
                allocated=bytes_text(cache.allocated_bytes(tokens, found.sequences)),
            )
        )  # fmt: skip
    else:
        said.append(text["growth_even"].format(each=bytes_text(last * found.sequences)))
    if cache.state_bytes():
        said.append(text["growth_state"].format(state=bytes_text(cache.state_bytes(found.sequences))))
    return text["join"].join(said)


def rows(found: Growth) -> Table:
    """Used and allocated bytes at some lengths."""
    cache, n = found.cache, found.sequences
    return Table(
        ("tokens", "used_bytes", "allocated_bytes", "state_bytes"),
        tuple(
            (place, cache.used_bytes(place, n), cache.allocated_bytes(place, n), cache.state_bytes(n))
            for place in found.places()
        ),
    )


def figure(found: Growth, text: Text, theme: Theme) -> Any:
    """Used as a filled teal line, allocated dashed above it where the two differ."""
    colours = palette(theme)
    places = [0, *found.places()]
    used = [found.cache.used_bytes(n, found.sequences) for n in places]
    allocated = [found.cache.allocated_bytes(n, found.sequences) for n in places]
    high = max(allocated[-1], used[-1], 1)
    area = {"fill": "tozeroy", "fillcolor": colours["memory-soft"]}
    traces = [_curve(places, used, text["used"], colours["memory"], {}, area)]
    if allocated[-1] > used[-1]:
        dashed = {"dash": "dash", "width": 1.5}
        traces.append(_curve(places, allocated, text["allocated"], colours["muted"], dashed, {}))
    frame = layout(
        colours, 280, showlegend=True,
        xaxis=axis(colours, title=titled(text["axis_tokens"], colours)) | counts(found.tokens),
        yaxis=value_axis(colours) | scale(high, lambda b: bytes_text(round(b)), unit=binary_unit(high)),
    )  # fmt: skip
    return go.Figure({"data": traces, "layout": frame})


def _curve(
    x: list[int], y: list[int], name: str, colour: str, style: dict[str, Any], more: dict[str, Any]
) -> dict[str, Any]:
    words = [f"{n:,}: {bytes_text(v)}" for n, v in zip(x, y, strict=True)]
    return line(
        x, y, colour, f"{name} <b>{bytes_text(y[-1])}</b>", style=style, text=words, hoverinfo="text",
        showlegend=True, **more,
    )  # fmt: skip


GROWTH = Chart("growth", sentence, rows, figure)
