"""Users x context against a device's memory, as a table of what fits. Arithmetic only (`core.fits`).

Markup in place of a plot: each cell says its bytes and whether it fits, which no shade alone could.
"""

from dataclasses import dataclass

from markupsafe import Markup

from playground.core.fits import Plan, largest
from playground.core.tables import Table
from playground.core.units import bytes_text
from playground.views.figures.chart import Chart, Text

USERS = (1, 4, 16, 32, 64, 128)
CONTEXTS = (1024, 4096, 16_384, 32_768, 131_072)
USERS_LIMIT = 10**6
CONTEXT_LIMIT = 10**9
CONTEXTS_SHOWN = 6
"""Columns that a phone has room for."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """A model on a device of `memory_bytes`.

    `users` and `context` are what is asked for; `context_limit` is the model's own, None unknown.
    """

    model: str
    device: str
    memory_bytes: int
    plan: Plan
    users: int = 32
    context: int = 4096
    context_limit: int | None = None

    def needed_bytes(self, users: int, context: int) -> int | None:
        """Weights, cache and activations together; None where the weights are unknown."""
        return self.plan.need(context, users).total_bytes

    def fits(self, users: int, context: int) -> bool | None:
        """Whether that many users at that context fit; None where the weights are unknown."""
        needed = self.needed_bytes(users, context)
        return None if needed is None else needed <= self.memory_bytes

    def most_users(self) -> int | None:
        """The largest batch that fits at the context asked for; None where no limit was met."""
        return largest(lambda users: users == 0 or bool(self.fits(users, self.context)), USERS_LIMIT)

    def longest_context(self) -> int | None:
        """The longest context that fits for the users asked for, up to the model's own; None without limit."""
        limit = self.context_limit or CONTEXT_LIMIT
        found = largest(lambda context: context == 0 or bool(self.fits(self.users, context)), limit)
        return self.context_limit if found is None else found

    def grid_users(self) -> list[int]:
        """The rows of the table, the asked number among them."""
        return sorted({*USERS, self.users})

    def grid_contexts(self) -> list[int]:
        """Its columns, the asked context among them; the others stay below the model's own."""
        limit = self.context_limit or CONTEXT_LIMIT
        return sorted({*(c for c in CONTEXTS if c <= limit), self.context})[-CONTEXTS_SHOWN:]


def sentence(found: Capacity, text: Text) -> str:
    """Whether what is asked for fits, and the most that does."""
    need = found.plan.need(found.context, found.users)
    if need.total_bytes is None:
        return text["room_unknown"].format(model=found.model)
    parts = text["room_parts" if need.activation_bytes else "room_parts_two"].format(
        weights=bytes_text(need.weights_bytes), cache=bytes_text(need.cache_bytes),
        activation=bytes_text(need.activation_bytes),
    )  # fmt: skip
    key = "room_fits" if need.total_bytes <= found.memory_bytes else "room_too_much"
    said = text[key].format(
        users=f"{found.users:,}", context=f"{found.context:,}", device=found.device, parts=parts,
        needed=bytes_text(need.total_bytes), memory=bytes_text(found.memory_bytes),
    )  # fmt: skip
    return text["join"].join((said, _most(found, text)))


def _most(found: Capacity, text: Text) -> str:
    users, context = found.most_users(), found.longest_context()
    if users == 0:
        return text["room_none"].format(context=f"{found.context:,}")
    return text["room_most"].format(
        users=_count(users, USERS_LIMIT, text), at=f"{found.context:,}", by=f"{found.users:,}",
        context=_count(context, CONTEXT_LIMIT, text),
    )  # fmt: skip


def _count(found: int | None, limit: int, text: Text) -> str:
    return text["room_more"].format(count=f"{limit:,}") if found is None else f"{found:,}"


def rows(found: Capacity) -> Table:
    """One row a cell of the table."""
    cells = [(users, context) for users in found.grid_users() for context in found.grid_contexts()]
    return Table(
        ("users", "context_tokens", "needed_bytes", "memory_bytes", "fits"),
        tuple(
            (u, c, found.needed_bytes(u, c), found.memory_bytes, _word(found.fits(u, c))) for u, c in cells
        ),
    )


def markup(found: Capacity, text: Text) -> Markup:
    """A grid: users down, context across."""
    contexts = found.grid_contexts()
    across = Markup("").join(_heading("col", c, found.context) for c in contexts)
    down = Markup("").join(_line(found, users, contexts, text) for users in found.grid_users())
    key = text["room_key"].format(device=found.device, memory=bytes_text(found.memory_bytes))
    return Markup(
        '<div class="figure-scroll" tabindex="0" role="region" aria-label="{}"><table class="capacity">'
        '<caption>{}</caption><thead><tr><th scope="col">{}</th>{}</tr></thead><tbody>{}</tbody></table></div>'
        '<p class="figure-key">{}</p>'
    ).format(text["capacity"], text["room_caption"], text["column_users"], across, down, key)


def _line(found: Capacity, users: int, contexts: list[int], text: Text) -> Markup:
    cells = Markup("").join(_cell(found, users, context, text) for context in contexts)
    return Markup("<tr>{}{}</tr>").format(_heading("row", users, found.users), cells)


def _heading(scope: str, count: int, asked: int) -> Markup:
    return Markup('<th scope="{}" class="{}">{}</th>').format(
        scope, "asked" if count == asked else "", f"{count:,}"
    )


def _cell(found: Capacity, users: int, context: int, text: Text) -> Markup:
    needed, word = found.needed_bytes(users, context), _word(found.fits(users, context))
    here = " asked" if (users, context) == (found.users, found.context) else ""
    shown = text["unknown"] if needed is None else bytes_text(needed)
    return Markup('<td class="{}">{}<span class="spoken">, {}</span></td>').format(
        word + here, shown, text["cell_" + word]
    )


def _word(fits: bool | None) -> str:
    return "unknown" if fits is None else "fits" if fits else "too_much"


CAPACITY = Chart("capacity", sentence, rows, markup=markup)
