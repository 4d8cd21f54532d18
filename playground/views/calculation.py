"""What a config costs, as markup: the page's calculator shows the object that the command prints.

Pure functions from `core.sizing.kv_report` and the words of the page. All that comes in is escaped.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup, escape

from playground.core.fits import Fit
from playground.core.formats import FORMATS
from playground.core.units import bytes_text, bytes_texts, seconds_text
from playground.views.cards import card, emphasised, grid_table, term_list
from playground.views.figures.numbers import power_text

Text = Mapping[str, str]
Report = Mapping[str, Any]


def headline(report: Report, name: str, text: Text, counting: bool = False) -> Markup:
    """How much, of what, and beside the weights; cache and weights in one unit.

    `counting` tells that the parameters are not known yet and will be.
    """
    cache, weights = report["used_bytes"] + report["state_bytes"], report["weights_bytes"]
    parts = [cache, weights, report["activation_bytes_estimated"]]
    shown = bytes_texts(*parts)
    body = Markup('<p class="kv-big">{}</p><p class="kv-finding">{}</p>{}').format(
        shown[0],
        emphasised(_sentence(report, name, shown, text, counting)),
        _beside(report, parts, shown, text),
    )
    return card(text["result"], body + _notes(report, text))


def _sentence(report: Report, name: str, shown: Sequence[str], text: Text, counting: bool) -> str:
    key = "whose_one" if report["sequences"] == 1 else "whose_many"
    whose = text[key].format(tokens=f"{report['tokens']:,}", sequences=f"{report['sequences']:,}")
    said = text["holds"].format(
        name=name, whose=whose, each=bytes_text(report["bytes_per_token"]), dtype=format_text(report, text)
    )
    if report["weights_bytes"] is None:
        return said + text["join"] + text["weights_counting" if counting else "weights_unknown"]
    ratio = (report["used_bytes"] + report["state_bytes"]) / report["weights_bytes"]
    return (
        said
        + text["join"]
        + text["weights_are"].format(
            weights=shown[1], parameters=f"{report['parameters']:,}", ratio=f"{ratio:.3g}"
        )
    )


def format_text(report: Report, text: Text) -> str:
    """The cache's numbers: a format, and its bits with what its groups share."""
    form = FORMATS[report["dtype"]]
    name = text.get(f"format_{form.name}", form.name)
    if not form.group:
        return name
    return text["format_grouped"].format(name=name, bits=f"{form.bits_with_overhead:g}", group=form.group)


def _beside(report: Report, parts: list[int | None], shown: list[str], text: Text) -> Markup:
    names = ("cache", "weights", "activations")
    rows = [
        (text[f"part_{name}"], value, "" if count is None else text["exact"].format(bytes=f"{count:,}"))
        for name, value, count in zip(names, shown, parts, strict=True)
        if name != "activations"
    ]
    if report["state_bytes"]:
        rows.append((text["part_state"], bytes_text(report["state_bytes"]), text["constant"]))
    if report["allocated_bytes"] != report["used_bytes"]:
        rows.append((text["part_allocated"], bytes_text(report["allocated_bytes"]), text["allocated_what"]))
    return term_list(rows)


def _notes(report: Report, text: Text) -> Markup:
    notes = []
    context = report["context"]
    if context is not None and report["tokens"] > context:
        notes.append(text["beyond"].format(context=f"{context:,}", tokens=f"{report['tokens']:,}"))
    if FORMATS[report["dtype"]].group or FORMATS[report["weights_dtype"]].group:
        notes.append(text["four_bit"])
    return Markup("").join(Markup('<p class="kv-note">{}</p>').format(note) for note in notes)


def lengths(report: Report, others: Sequence[Report], text: Text) -> Markup:
    """One sequence at lengths that are easily taken for each other, side by side."""
    shown = [
        [bytes_text(one[name] // one["sequences"]) for one in others]
        for name in ("used_bytes", "allocated_bytes")
    ]
    header = [text["tokens_column"], *(f"{one['tokens']:,}" for one in others)]
    rows = [[text["used"], *shown[0]]]
    if shown[0] != shown[1]:
        rows.append([text["allocated"], *shown[1]])
    rows.append([text["exact_column"], *(f"{one['used_bytes'] // one['sequences']:,}" for one in others)])
    said = text["lengths_finding"].format(first=shown[0][0], second=shown[0][1])
    body = Markup('<p class="kv-finding">{}</p>{}').format(
        emphasised(said), grid_table(header, rows, text["lengths"])
    )
    return card(text["lengths"], body)


def layers(report: Report, text: Text) -> Markup:
    """Which layers keep what: kinds, windows, heads and bytes."""
    alike: Counter[tuple[str, ...]] = Counter()
    for layer in report["layers"]:
        kind = text.get("kind_" + layer["kind"].replace(" + ", "_").replace("-", "_"), layer["kind"])
        numbers = (layer[name] for name in ("window", "kv_heads", "head_dim", "bytes_per_token"))
        state = (
            [bytes_text(layer["state_bytes"]) if layer["state_bytes"] else "–"]
            if report["state_bytes"]
            else []
        )
        alike[kind, *(f"{value:,}" if value else "–" for value in numbers), *state] += layer["count"]
    names = ["count", "kind", "window", "kv_heads", "head_dim", "bytes_per_token"]
    header = [text[f"layers_{name}"] for name in names]
    if report["state_bytes"]:
        header.append(text["layers_state"])
    rows = [[f"{count:,}", *values] for values, count in alike.items()]
    return card(text["layers"], grid_table(header, rows, text["layers"]))


@dataclass(frozen=True, slots=True)
class Placed:
    """What is asked for on one accelerator; `asked` marks the one that the calculator is set to."""

    title: str
    bytes_per_second: int
    fit: Fit
    asked: bool
    source: str
    note: str = ""


def accelerators(found: Sequence[Placed], report: Report, text: Text) -> Markup:
    """Memory and bandwidth of common accelerators beside what fits, and how long all of it takes to read."""
    holding = sum(bool(one.fit.fits) for one in found)
    whose = text["whose_one" if report["sequences"] == 1 else "whose_many"].format(
        tokens=f"{report['tokens']:,}", sequences=f"{report['sequences']:,}"
    )
    key = "accelerators_unknown" if report["weights_bytes"] is None else "accelerators_finding"
    said = text[key].format(count=holding, all=len(found), whose=whose)
    names = ("name", "memory", "bandwidth", "fits", "most", "read")
    body = Markup('<p class="kv-finding">{}</p>{}').format(
        emphasised(said),
        grid_table(
            [text[f"accelerators_{name}"] for name in names],
            [_placed(one, report, text) for one in found],
            text["accelerators"],
        ),
    )
    read = Markup('<details class="kv-fold"><summary>{}</summary>{}</details>').format(
        text["accelerators_sources"], _source_list([(one.title, one.source, one.note) for one in found])
    )
    return card(text["accelerators"], body + read)


def _placed(one: Placed, report: Report, text: Text) -> list[str | Markup]:
    weights = report["weights_bytes"]
    read = (weights or 0) + report["used_bytes"] + report["state_bytes"]
    most = text["any_number"] if one.fit.largest_sequences is None else f"{one.fit.largest_sequences:,}"
    return [
        Markup("<b>{}</b>").format(one.title) if one.asked else one.title,
        bytes_text(one.fit.memory_bytes),
        power_text(one.bytes_per_second, "B/s"),
        text["unknown"] if one.fit.fits is None else text["yes" if one.fit.fits else "no"],
        text["unknown"] if weights is None else most,
        seconds_text(read / one.bytes_per_second) if one.fit.fits else "–",
    ]


def sources(read: Sequence[tuple[str, str, str]], text: Text) -> Markup:
    """Where the figures of the catalog were read, as text and, where it is an address, as a link."""
    quality = Markup('<p class="kv-note">{} {}</p>').format(
        text["quality"], _linked("https://arxiv.org/abs/2305.13245")
    )
    return card(text["sources"], _source_list(read) + quality)


def _source_list(read: Sequence[tuple[str, str, str]]) -> Markup:
    items = Markup("").join(
        Markup("<li><b>{}</b>: {}{}</li>").format(
            title, _linked(source), f" ({what.replace('`', '')})" if what else ""
        )
        for title, source, what in read
    )
    return Markup('<ul class="kv-sources">{}</ul>').format(items)


def _linked(source: str) -> Markup:
    """The addresses in a text as links that are followed only when they are pressed."""
    parts = re.split(r"(https://[^\s;,)]+)", source)
    return Markup("").join(
        Markup('<a href="{}" target="_blank" rel="noopener noreferrer">{}</a>').format(part, part)
        if i % 2
        else escape(part)
        for i, part in enumerate(parts)
    )
