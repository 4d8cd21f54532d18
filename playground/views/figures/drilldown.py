"""One token's cost, built up: a key, key and value, the heads of a layer, all layers.

Markup in place of a plot: a list whose levels carry strips of bricks, the first of which is the level before.
Arithmetic on the config.
"""

from collections import Counter
from dataclasses import dataclass, replace

from markupsafe import Markup

from playground.core.kv import CacheSpec, LayerSpec
from playground.core.tables import Table
from playground.core.units import bytes_text
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import amount

BRICKS_LIMIT = 600
"""Of a strip; more are told by the words alone."""


@dataclass(frozen=True, slots=True)
class Drilldown:
    """A model's cache, for the cost of one token and of `tokens` in each of `sequences`."""

    name: str
    cache: CacheSpec
    tokens: int = 4096
    sequences: int = 1


@dataclass(frozen=True, slots=True)
class Level:
    """`count` of the level before are `bytes`; `kind` is KV heads × width, where layers differ."""

    key: str
    count: int
    bytes: int
    kind: str = ""


def levels(found: Drilldown) -> list[Level]:
    """From one key to a token, for each kind of layer that keeps something."""
    form = found.cache.format
    kinds = Counter(_shape(layer) for layer in found.cache.layers if layer.bytes_per_token(form))
    shown: list[Level] = []
    for layer, count in kinds.items():
        kind = f"{layer.kv_heads} × {layer.head_dim}" if len(kinds) > 1 else ""
        each = layer.bytes_per_token(form)
        shown += [*_of_layer(layer, found.cache, kind), Level("layers", count, each * count, kind)]
    if len(kinds) > 1:
        shown.append(Level("token", len(kinds), found.cache.bytes_per_token))
    if kinds and found.tokens > 1:
        shown.append(Level("tokens", found.tokens, found.cache.used_bytes(found.tokens)))
    if kinds and found.sequences > 1:
        whole = found.cache.used_bytes(found.tokens, found.sequences)
        shown.append(Level("sequences", found.sequences, whole))
    return shown


def _shape(layer: LayerSpec) -> LayerSpec:
    """What a token costs in a layer does not hang on its window, nor on a state beside it."""
    kind = "latent" if layer.kind.startswith("latent") else "full"
    return replace(layer, kind=kind, window=None, state=None)


def _of_layer(layer: LayerSpec, cache: CacheSpec, kind: str) -> list[Level]:
    key, value = layer.vector_bytes(cache.format)
    if not value:
        return [Level("latent", layer.head_dim, key * layer.kv_heads, kind)]
    return [
        Level("key", layer.head_dim, key, kind),
        Level("pair", 2, key + value, kind),
        Level("heads", layer.kv_heads, (key + value) * layer.kv_heads, kind),
    ]


def sentence(found: Drilldown, text: Text) -> str:
    """A token's bytes, and those of all tokens."""
    each = found.cache.bytes_per_token
    return text["cost_finding" if each else "cost_none"].format(
        model=found.name, each=f"{each:,}", amount=amount(found.tokens, found.sequences, text),
        used=bytes_text(found.cache.used_bytes(found.tokens, found.sequences)),
    )  # fmt: skip


def rows(found: Drilldown) -> Table:
    """One row a level, to the byte."""
    return Table(
        ("level", "layer_kind", "count", "exact"),
        tuple((level.key, level.kind or None, level.count, level.bytes) for level in levels(found)),
    )


def markup(found: Drilldown, text: Text) -> Markup:
    """The levels as a list."""
    items = Markup("").join(_item(level, text) for level in levels(found))
    return Markup('<ol class="drill" aria-label="{}">{}</ol>').format(text["drilldown"], items)


def _item(level: Level, text: Text) -> Markup:
    words = text[f"cost_{level.key}"].format(count=f"{level.count:,}")
    if level.kind:
        words = text["cost_of_kind"].format(words=words, kind=level.kind)
    strip = (
        Markup("") if level.key in ("token", "tokens") or level.count > BRICKS_LIMIT else _strip(level.count)
    )
    summed = level.key in ("tokens", "sequences")
    shown = bytes_text(level.bytes) if summed else f"{level.bytes:,} B"
    return Markup(
        '<li class="drill-{}"><b class="drill-bytes">{}</b><span class="drill-words">{}</span>{}</li>'
    ).format(level.key, shown, words, strip)


def _strip(count: int) -> Markup:
    return Markup('<span class="bricks" aria-hidden="true">{}</span>').format(Markup("<i></i>") * count)


DRILLDOWN = Chart("drilldown", sentence, rows, markup=markup)
