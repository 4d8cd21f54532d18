"""The most memory that a prefill held, told apart: weights, cache, logits, the rest; measured beside predicted."""

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
        said.append(text[f"peak_total_{found.total_origin}"].format(
            tokens=f"{found.tokens:,}", total=bytes_text(found.total_bytes),
            predicted=bytes_text(found.predicted_bytes),
        ))  # fmt: skip
    if known:
        largest = max(known, key=lambda part: part.bytes or 0)
        said.append(_largest(largest, found, text))
    return text["join"].join((*said, _every_row(found, text))).strip() or text["nothing_measured"]


def _largest(part: MemoryPart, found: PeakMemory, text: Text) -> str:
    values = {"part": text["cell_" + part.name], "bytes": bytes_text(part.bytes)}
    if not found.total_bytes:
        return text["peak_largest"].format(**values)
    share = round((part.bytes or 0) / found.total_bytes, 3)
    return text["peak_largest_share"].format(**values, share=probability_text(share))


def _every_row(found: PeakMemory, text: Text) -> str:
    """The hidden peak: a prefill that asks for the logits of every position."""
    asked = sum(part.bytes or 0 for part in found.parts if part.name == "logits")
    if found.logits_of_all_bytes <= asked:
        return ""
    said = text["peak_logits"].format(all=bytes_text(found.logits_of_all_bytes), asked=bytes_text(asked))
    if found.all_logits_bytes is None or found.total_bytes is None:
        return said
    return said + text["join"] + text["peak_all_measured"].format(
        total=bytes_text(found.all_logits_bytes),
        more=bytes_text(max(0, found.all_logits_bytes - found.total_bytes)),
    )  # fmt: skip


def figure(found: PeakMemory, text: Text, theme: Theme) -> Any:
    """A bar a part with what was predicted under it, then the whole, and with the logits of all positions."""
    colours = palette(theme)
    drawn = [_bar(part, text, colours) for part in found.parts if part.bytes]
    if found.total_bytes and found.total_origin == "measured":
        drawn.append(_total("peak_whole", found.total_bytes, found.predicted_bytes, "ink", text, colours))
    if found.all_logits_bytes:
        drawn.append(_total("peak_whole_all", found.all_logits_bytes, None, "prefill", text, colours))
    elif found.logits_of_all_bytes:
        drawn.append(
            Bar(text["peak_if_all"], bytes_text(found.logits_of_all_bytes), found.logits_of_all_bytes,
                colours["prefill"], ghost=True)
        )  # fmt: skip
    return bars(drawn, colours)


def _bar(part: MemoryPart, text: Text, colours: Palette) -> Bar:
    words = text["peak_part"].format(part=text["cell_" + part.name], origin=text["cell_" + part.origin])
    measured = part.origin == "measured" and part.predicted_bytes is not None
    return Bar(
        words, bytes_text(part.bytes), part.bytes or 0, colours[_COLOURS[part.name]],
        beside=part.predicted_bytes if measured else None,
        remark=_remark(part.predicted_bytes, part.predicted_origin, text) if measured else "",
    )  # fmt: skip


def _total(key: str, total: int, predicted: int | None, colour: str, text: Text, colours: Palette) -> Bar:
    words = text["peak_part"].format(part=text[key], origin=text["cell_measured"])
    remark = "" if predicted is None else _remark(predicted, "estimated", text)
    return Bar(words, bytes_text(total), total, colours[colour], beside=predicted, remark=remark)


def _remark(predicted: int | None, origin: str, text: Text) -> str:
    return text["beside"].format(origin=text["cell_" + origin], bytes=bytes_text(predicted))


PEAK = Chart("peak", sentence, table, figure)
