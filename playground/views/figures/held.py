"""What the caches of a run hold, by kind of layer: one bar a kind, under it what the arithmetic says.

Layers are measured at the end of a run; where they were not, the arithmetic stands alone (`core.holding`).
"""

from typing import Any

from playground.core.holding import Holding, KindOfLayer
from playground.core.tables import Cell, Table
from playground.core.units import bytes_text
from playground.views.figures.chart import Chart, Text
from playground.views.figures.palette import Palette, Theme, palette
from playground.views.figures.rows_of_bars import Bar, bars


def sentence(found: Holding, text: Text) -> str:
    """The measured bytes, whether they are as computed, and which kinds hold other than that."""
    if not found.tokens:
        return text["held_nothing"]
    said = [
        text["held_measured" if found.used_bytes is not None else "held_computed"].format(
            tokens=f"{found.tokens:,}", used=bytes_text(_first_known(found.used_bytes, found.predicted_bytes)),
        )
    ]  # fmt: skip
    if found.equal is not None:
        said.append(text["held_equal" if found.equal else "held_other"].format(
            predicted=bytes_text(found.predicted_bytes)
        ))  # fmt: skip
    said += [_apart(kind, text) for kind in found.kinds if kind.equal is False]
    if found.allocated_bytes is not None and found.allocated_bytes != found.used_bytes:
        said.append(text["held_allocated"].format(allocated=bytes_text(found.allocated_bytes)))
    return text["join"].join(said)


def _apart(kind: KindOfLayer, text: Text) -> str:
    used, predicted = (
        (kind.used_bytes or 0) + (kind.state_bytes or 0),
        kind.predicted_bytes + kind.predicted_state_bytes,
    )
    layers = _layers(kind, text)
    if kind.window:
        layers = text["held_window"].format(layers=layers, window=f"{kind.window:,}")
    return text["held_apart"].format(layers=layers, used=bytes_text(used), predicted=bytes_text(predicted))


def rows(found: Holding) -> Table:
    """One row a layer, then the sums; what was not measured is unknown."""
    header = (
        "layer", "layer_kind", "window", "used_bytes", "predicted_used_bytes", "allocated_bytes", "state_bytes",
        "predicted_state_bytes",
    )  # fmt: skip
    layers: list[tuple[Cell, ...]] = [
        (place, one.kind, one.window, one.used_bytes, one.predicted_bytes, one.allocated_bytes, one.state_bytes,
         one.predicted_state_bytes)
        for place, one in enumerate(found.layers)
    ]  # fmt: skip
    total = (
        "total", None, None, found.used_bytes, found.predicted_bytes, found.allocated_bytes, found.state_bytes,
        found.predicted_state_bytes,
    )  # fmt: skip
    return Table(header, (*layers, total))


def figure(found: Holding, text: Text, theme: Theme) -> Any:
    """A bar a kind; states have their own, and the allocated bytes are outlined where they are more."""
    colours = palette(theme)
    drawn = [bar for kind in found.kinds for bar in _bars(kind, text, colours)]
    if found.allocated_bytes and found.allocated_bytes != found.used_bytes:
        words = text["held_part"].format(name=text["allocated"], origin=text["cell_measured"])
        drawn.append(
            Bar(
                words, bytes_text(found.allocated_bytes), found.allocated_bytes, colours["memory"], ghost=True
            )
        )
    return bars(drawn, colours)


def _layers(kind: KindOfLayer, text: Text) -> str:
    name = text.get("cell_" + kind.kind.replace(" + ", "_").replace("-", "_"), kind.kind)
    return f"{kind.count} × {name}"


def _bars(kind: KindOfLayer, text: Text, colours: Palette) -> list[Bar]:
    of, shown = _layers(kind, text), []
    if kind.predicted_bytes or kind.used_bytes or not kind.predicted_state_bytes:
        shown.append(_bar(of, kind.used_bytes, kind.predicted_bytes, colours["memory"], text))
    if kind.predicted_state_bytes or kind.state_bytes:
        words = text["held_part"].format(name=of, origin=text["state"])
        shown.append(_bar(words, kind.state_bytes, kind.predicted_state_bytes, colours["bar-thin"], text))
    return shown


def _bar(words: str, measured: int | None, predicted: int, colour: str, text: Text) -> Bar:
    """Measured, the predicted bytes beside it; an outline of these alone where nothing was measured."""
    if measured is None:
        words = text["held_part"].format(name=words, origin=text["cell_computed"])
        return Bar(words, bytes_text(predicted), predicted, colour, ghost=True)
    remark = text["beside"].format(origin=text["cell_computed"], bytes=bytes_text(predicted))
    return Bar(words, bytes_text(measured), measured, colour, beside=predicted, remark=remark)


def _first_known(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


HELD = Chart("held", sentence, rows, figure)
