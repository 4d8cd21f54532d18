"""Pieces of markup that cards of the page are made of; all that comes in is escaped. Knows no numbers' meaning."""

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from playground.views.figures.frame import emphasised

__all__ = ["card", "emphasised", "grid_table", "heading", "term_list"]


def card(title: str, body: Markup) -> Markup:
    """A titled card, a region of that name."""
    return Markup('<section class="kv-card" aria-label="{}">{}{}</section>').format(
        title, heading(title), body
    )


def heading(title: str) -> Markup:
    """The quiet title of a card."""
    return Markup('<h3 class="kv-title">{}</h3>').format(title)


def term_list(rows: Iterable[tuple[str, str, str]]) -> Markup:
    """Names with a value and a quiet remark each."""
    items = Markup("").join(
        Markup("<div><dt>{}</dt><dd><b>{}</b> <span>{}</span></dd></div>").format(*row) for row in rows
    )
    return Markup('<dl class="kv-terms">{}</dl>').format(items)


def grid_table(header: Sequence[str], rows: Iterable[Sequence[str | Markup]], name: str) -> Markup:
    """A plain table whose first column names the row; it scrolls in itself where it is too wide."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(cell) for cell in header)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup("<td>{}</td>").format(cell) for cell in row[1:])
        )
        for row in rows
    )
    return Markup(
        '<div class="kv-scroll" tabindex="0" role="group" aria-label="{}"><table class="kv-table">'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(name, head, body)
