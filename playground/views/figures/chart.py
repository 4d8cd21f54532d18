"""What every figure is: a sentence with its finding, a table, and a drawing, made from one value.

Knows no gradio, no run and no language: the words come in as a mapping, the section `figures` of the page's
texts. The sentence and the table say all that the drawing shows, for those who cannot see it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from markupsafe import Markup

from playground.core.tables import Table
from playground.views.figures.palette import Theme

V = TypeVar("V")
Text = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Chart(Generic[V]):
    """One kind of figure. `name` is that of its files.

    `sentence` states the finding, its numbers between `**`; `rows` are the plain numbers behind it, columns
    named with their units. It is drawn by `figure`, or where markup reads better than a plot by `markup`.
    """

    name: str
    sentence: Callable[[V, Text], str]
    rows: Callable[[V], Table]
    figure: Callable[[V, Text, Theme], Any] | None = None
    markup: Callable[[V, Text], Markup] | None = None
