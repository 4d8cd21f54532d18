"""The cache of a model beside what it would be with other attention: one bar each, the real one filled.

Which kinds there are, and how they are computed, stands in `core.ghosts`.
"""

from dataclasses import dataclass
from typing import Any

from playground.core.ghosts import LOCAL_OF, LOCAL_WINDOW_TOKENS, Ghost, ghosts
from playground.core.kv import CacheSpec
from playground.core.tables import Table
from playground.core.units import bytes_text
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import amount, figures_text
from playground.views.figures.palette import Theme, palette
from playground.views.figures.rows_of_bars import Bar, bars

_EXPLAINED = ("mla", "windowed", "full")


@dataclass(frozen=True, slots=True)
class Ghosts:
    """A model's cache and what it could be, for `tokens` tokens in each of `sequences`."""

    name: str
    cache: CacheSpec
    tokens: int
    sequences: int = 1

    @property
    def bars(self) -> tuple[Ghost, ...]:
        """The kinds, the real one among them; empty where no layer attends."""
        return ghosts(self.cache, self.tokens, self.sequences)

    @property
    def real_bytes(self) -> int:
        """Of what the model has."""
        return self.cache.used_bytes(self.tokens, self.sequences)


def sentence(found: Ghosts, text: Text) -> str:
    """The real bytes, and how many times that multi-head attention would take."""
    if not found.bars:
        return text["ghosts_none"].format(model=found.name)
    said = [
        text["ghosts_real"].format(
            model=found.name, amount=amount(found.tokens, found.sequences, text),
            used=bytes_text(found.real_bytes),
        )
    ]  # fmt: skip
    mha = next((bar for bar in found.bars if bar.name == "mha" and not bar.real), None)
    if mha and found.real_bytes:
        said.append(
            text["ghosts_mha"].format(
                heads=mha.kv_heads, used=bytes_text(mha.used_bytes),
                ratio=figures_text(mha.used_bytes / found.real_bytes),
            )
        )  # fmt: skip
    return text["join"].join(said)


def rows(found: Ghosts) -> Table:
    """One row a bar."""
    real = found.real_bytes
    return Table(
        ("attention", "kv_heads", "used_bytes", "times_the_real", "real"),
        tuple(
            (
                b.name,
                b.kv_heads,
                b.used_bytes,
                b.used_bytes / real if real else None,
                "yes" if b.real else "no",
            )
            for b in found.bars
        ),
    )


def figure(found: Ghosts, text: Text, theme: Theme) -> Any:
    """The real one filled, the others outlined."""
    colours = palette(theme)
    drawn = [
        Bar(_words(bar, text), bytes_text(bar.used_bytes), bar.used_bytes, colours["memory"], not bar.real)
        for bar in found.bars
    ]
    return bars(drawn, colours)


def _words(bar: Ghost, text: Text) -> str:
    if bar.kv_heads is not None and (bar.real or bar.name in ("mha", "gqa", "mqa")):
        key = "ghosts_heads" if bar.kv_heads > 1 else "ghosts_head"
        kind = text[key].format(kind=text[f"cell_{bar.name}"], heads=bar.kv_heads)
    else:
        kind = text[f"ghosts_{bar.name}" if bar.name in _EXPLAINED and not bar.real else f"cell_{bar.name}"]
    said = kind.format(window=f"{LOCAL_WINDOW_TOKENS:,}", of=LOCAL_OF, others=LOCAL_OF - 1)
    return text["ghosts_as_is"].format(kind=said) if bar.real else said


GHOSTS = Chart("ghosts", sentence, rows, figure)
