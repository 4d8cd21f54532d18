"""Prefill and decode of runs as shares of their time: one bar a run.

Knows a run's times only. The first token comes out of the prefill; decode are the steps after it.
"""

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from playground.core.metrics import Timing
from playground.core.tables import Table
from playground.core.units import seconds_text
from playground.views.figures.axes import axis, label, layout
from playground.views.figures.chart import Chart, Text
from playground.views.figures.palette import Palette, Theme, palette

_ROW_PIXELS = 78


@dataclass(frozen=True, slots=True)
class Phases:
    """The two times of one run. `origin` is measured, or estimated for a run that was not made."""

    prompt_tokens: int
    new_tokens: int
    prefill_seconds: float
    decode_seconds: float
    origin: str = "measured"

    @property
    def prefill_share(self) -> float:
        """Of the two together; 0 where there was no time at all."""
        whole = self.prefill_seconds + self.decode_seconds
        return self.prefill_seconds / whole if whole else 0.0


def article_case(times: Timing, prompt_tokens: int = 100, new_tokens: int = 500) -> Phases | None:
    """A chat's 100 + 500 tokens at the rates of a run: estimated; None where one of the rates is unknown."""
    if not times.prefill_tokens_per_second or not times.decode_tokens_per_second:
        return None
    return Phases(
        prompt_tokens, new_tokens, prompt_tokens / times.prefill_tokens_per_second,
        (new_tokens - 1) / times.decode_tokens_per_second, "estimated",
    )  # fmt: skip


def sentence(found: tuple[Phases, ...], text: Text) -> str:
    """The shares of the first run, and of the others after it."""
    if not found:
        return text["nothing_measured"]
    said = [
        text[f"phases_{one.origin}"].format(
            prompt=f"{one.prompt_tokens:,}", new=f"{one.new_tokens:,}", prefill=_percent(one.prefill_share),
            decode=_percent(1 - one.prefill_share),
        )
        for one in found
    ]  # fmt: skip
    return text["join"].join(said)


def rows(found: tuple[Phases, ...]) -> Table:
    """One row a run."""
    header = (
        "prompt_tokens", "new_tokens", "prefill_seconds", "decode_seconds", "prefill_share", "decode_share",
        "origin",
    )  # fmt: skip
    return Table(
        header,
        tuple(
            (one.prompt_tokens, one.new_tokens, one.prefill_seconds, one.decode_seconds, one.prefill_share,
             1 - one.prefill_share, one.origin)
            for one in found
        ),
    )  # fmt: skip


def figure(found: tuple[Phases, ...], text: Text, theme: Theme) -> Any:
    """A bar of the full width for each run: prefill in violet, then decode."""
    colours = palette(theme)
    places = list(range(len(found), 0, -1))
    shares = [one.prefill_share for one in found]
    notes = [
        note
        for one, place in zip(found, places, strict=True)
        for note in _words(one, place, text, colours)
    ]  # fmt: skip
    frame = layout(
        colours, 12 + _ROW_PIXELS * len(found), barmode="stack", bargap=0.78, annotations=notes,
        margin={"l": 1, "r": 1, "t": 2, "b": 2},
        xaxis=axis(colours, visible=False, range=[0, 1]),
        yaxis=axis(colours, visible=False, range=[0.45, len(found) + 0.55]),
    )  # fmt: skip
    traces = [
        _segment(shares, places, colours["prefill"]),
        _segment([1 - share for share in shares], places, colours["bar-thin"]),
    ]
    return go.Figure({"data": traces, "layout": frame})


def _segment(x: list[float], y: list[int], colour: str) -> dict[str, Any]:
    return {
        "type": "bar", "orientation": "h", "x": x, "y": y, "hoverinfo": "skip", "marker": {"color": colour}
    }  # fmt: skip


def _words(one: Phases, place: int, text: Text, colours: Palette) -> list[dict[str, Any]]:
    about = text["phases_run"].format(
        prompt=f"{one.prompt_tokens:,}", new=f"{one.new_tokens:,}", origin=text["cell_" + one.origin]
    )
    prefill = (
        f"{text['phases_prefill']} <b>{_percent(one.prefill_share)}</b> {seconds_text(one.prefill_seconds)}"
    )
    decode = (
        f"{text['phases_decode']} <b>{_percent(1 - one.prefill_share)}</b> {seconds_text(one.decode_seconds)}"
    )
    return [
        label(about, 0, place, colours["muted"], yshift=21, xshift=-2),
        label(prefill, 0, place, colours["prefill"], yshift=-20, xshift=-2),
        label(decode, 1, place, colours["ink"], yshift=-20, xshift=2, xanchor="right"),
    ]


def _percent(share: float) -> str:
    percent = share * 100
    return f"{percent:.0f} %" if 10 <= percent <= 90 else f"{percent:.1f} %"


PHASES = Chart("phases", sentence, rows, figure)
