"""What a server can do, as a table of sentences. Everything that a server says is escaped.

Knows no server and no component.
"""

from collections.abc import Iterable

from markupsafe import Markup, escape

from playground.core.request import ModelFacts
from playground.views.words import say

ROWS = Markup(
    '<tr class="{kind}"><th scope="row">{name}</th><td class="there">{there}</td><td>{why}</td></tr>'
)


def found_table(
    facts: ModelFacts, address: str, abilities: Iterable[tuple[str, bool, str]], language: str
) -> Markup:
    """`abilities` are names with whether they are there and the key of a reason, empty for none."""
    rows = Markup("").join(_row(name, there, reason, language) for name, there, reason in abilities)
    context = f"{facts.context:,}" if facts.context else say(language, "connect.unknown")
    head = escape(
        say(
            language, "connect.found", model=facts.name, server=facts.device, address=address, context=context
        )
    )
    labels = [say(language, f"connect.{name}") for name in ("column_what", "column_there", "column_why")]
    columns = Markup("").join(Markup("<th scope='col'>{}</th>").format(label) for label in labels)
    return Markup(
        '<p class="connect-found" role="status">{}</p><table class="connect-table"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table>"
    ).format(head, columns, rows)


def told(sentence: str, *, bad: bool = False) -> Markup:
    """One sentence in the table's place."""
    return Markup('<p class="{}" role="{}">{}</p>').format(
        "connect-error" if bad else "connect-note", "alert" if bad else "status", sentence
    )


def _row(name: str, there: bool, reason: str, language: str) -> Markup:
    why = say(language, f"connect.why_{reason}") if reason else say(language, f"connect.about_{name}")
    return ROWS.format(
        kind="there" if there else "lacking",
        name=say(language, f"connect.can_{name}"),
        there=say(language, "connect.yes" if there else "connect.no"),
        why=why,
    )
