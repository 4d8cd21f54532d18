"""The words around a figure as markup: its finding above, its table and downloads below.

Everything that comes in is escaped here: a model's name is whatever somebody wrote into a file.
"""

import re
from dataclasses import replace
from typing import TypeVar
from urllib.parse import quote

from markupsafe import Markup, escape

from playground.core.tables import Cell, Table
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import cell_text

V = TypeVar("V")

_QUANTITY = re.compile(r"^([\d.,]+) (%|ms|s|min|h|times|[KMGT]?i?B)$")

ROWS_LIMIT = 5000
"""Of a table: a run has at most as many steps."""


def head(chart: Chart[V], value: V, text: Text) -> Markup:
    """The finding, and the drawing where it is markup."""
    drawn = chart.markup(value, text) if chart.markup else Markup("")
    return Markup('<p class="finding">{}</p>{}').format(emphasised(chart.sentence(value, text)), drawn)


def foot(chart: Chart[V], value: V, text: Text) -> Markup:
    """The table, folded, and the downloads."""
    table = chart.rows(value)
    table = replace(table, rows=table.rows[:ROWS_LIMIT])
    pictures = ("png", "svg") if chart.figure is not None else ()
    links = [_csv_link(chart.name, table, text)]
    links += [_picture_button(chart.name, kind, text) for kind in pictures]
    return Markup(
        '<div class="figure-tools"><details class="figure-table"><summary>{}</summary>'
        '<div class="figure-scroll" tabindex="0" role="region" aria-label="{}">{}</div></details>{}</div>'
    ).format(text["table"], text["table"], table_markup(table, text), Markup("").join(links))


def emphasised(sentence: str) -> Markup:
    """The sentence escaped, what stands between `**` in bold; a number in bold stays with its unit."""
    parts = sentence.split("**")
    return Markup("").join(
        Markup("<b>{}</b>").format(_QUANTITY.sub("\\1\u00a0\\2", part)) if i % 2 else escape(part)
        for i, part in enumerate(parts)
    )


def table_markup(table: Table, text: Text) -> Markup:
    """The table for people: translated columns, quantities with units."""
    names = Markup("").join(
        Markup('<th scope="col">{}</th>').format(_column(name, text)) for name in table.header
    )
    rows = Markup("").join(Markup("<tr>{}</tr>").format(_row(table.header, row, text)) for row in table.rows)
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(names, rows)


def csv_text(table: Table) -> str:
    """As CSV; a text that a spreadsheet would run as a formula is quoted by an apostrophe."""
    rows = tuple(tuple(_inert(cell) for cell in row) for row in table.rows)
    return replace(table, rows=rows).csv()


def _inert(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def _row(header: tuple[str, ...], row: tuple[Cell, ...], text: Text) -> Markup:
    cells = (_shown(name, cell, text) for name, cell in zip(header, row, strict=True))
    return Markup("").join(Markup("<td>{}</td>").format(cell) for cell in cells)


def _shown(name: str, cell: Cell, text: Text) -> str:
    if isinstance(cell, str):
        return text.get("cell_" + re.sub(r"\W+", "_", cell.lower()), cell)
    return text["unknown"] if cell is None else cell_text(name, cell)


def _column(name: str, text: Text) -> str:
    return text.get(f"column_{name}", name.replace("_", " "))


def _csv_link(name: str, table: Table, text: Text) -> Markup:
    data = "data:text/csv;charset=utf-8," + quote(csv_text(table))
    return Markup('<a class="figure-file" download="{}.csv" href="{}" aria-label="{}">CSV</a>').format(
        name, data, text["download"].format(kind="CSV")
    )


def _picture_button(name: str, kind: str, text: Text) -> Markup:
    return Markup(
        '<button type="button" class="figure-file" data-picture="{}" data-name="{}" aria-label="{}">{}</button>'
    ).format(kind, name, text["download"].format(kind=kind.upper()), kind.upper())
