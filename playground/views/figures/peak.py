"""The most memory that a prefill held, told apart: weights, cache, logits, the rest."""

from typing import Any

from playground.core.experiment import MemoryPart, PeakMemory
from playground.core.tables import table
from playground.core.units import bytes_text, probability_text
from playground.views.figures.chart import Chart, Text
from playground.views.figures.palette import Palette, Theme, palette
from playground.views.figures.rows_of_bars import Bar, bars

_COLOURS = {"weights": "bar", "kv": "memory", "state": "memory", "logits": "prefill", "rest": "bar-thin"}


def sentence(found: PeakMemory, text: Text) -> str:
    """The peak, its largest part, and the logits that were not asked for."""
    known = [part for part in found.parts if part.bytes is not None]
    said = []
    if found.total_bytes is not None:
        said.append(
            text["peak_total"].format(tokens=f"{found.tokens:,}", total=bytes_text(found.total_bytes))
        )
    if known:
        largest = max(known, key=lambda part: part.bytes or 0)
        said.append(_largest(largest, found, text))
    asked = sum(part.bytes or 0 for part in known if part.name == "logits")
    if found.logits_of_all_bytes > asked:
        said.append(
            text["peak_logits"].format(all=bytes_text(found.logits_of_all_bytes), asked=bytes_text(asked))
        )
    return text["join"].join(said) or text["nothing_measured"]


def _largest(part: MemoryPart, found: PeakMemory, text: Text) -> str:
    values = {"part": text["cell_" + part.name], "bytes": bytes_text(part.bytes)}
    if not found.total_bytes:
        return text["peak_largest"].format(**values)
    share = round((part.bytes or 0) / found.total_bytes, 3)
    return text["peak_largest_share"].format(**values, share=probability_text(share))


def figure(found: PeakMemory, text: Text, theme: Theme) -> Any:
    """A bar a part, and outlined the logits of all positions."""
    colours = palette(theme)
    drawn = [_bar(part, text, colours) for part in found.parts if part.bytes]
    if found.logits_of_all_bytes:
        drawn.append(
            Bar(text["peak_if_all"], bytes_text(found.logits_of_all_bytes), found.logits_of_all_bytes,
                colours["prefill"], ghost=True)
        )  # fmt: skip
    return bars(drawn, colours)


def _bar(part: MemoryPart, text: Text, colours: Palette) -> Bar:
    words = text["peak_part"].format(part=text["cell_" + part.name], origin=text["cell_" + part.origin])
    return Bar(words, bytes_text(part.bytes), part.bytes or 0, colours[_COLOURS[part.name]])


PEAK = Chart("peak", sentence, table, figure)
