"""One figure on the page: its finding in a sentence, the drawing, the table behind it, and downloads.

Every figure of the page is this component. The value is kept, so that another language draws it again;
colours follow the theme without the server (`assets/figure.css`), PNG and SVG are made by the browser
(`assets/figure.js`), CSV is in the page as a link. `gr.Plot` builds a figure anew at every change: for
finished results, not for a run under way. Knows no experiment.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import gradio as gr

from playground.ui.text import LANGUAGES, Words, sections
from playground.views.figures.chart import Chart
from playground.views.figures.frame import foot, head

V = TypeVar("V")

_WHO = "(value, by) => [value, window.firstToken?.who() ?? '']"


@dataclass(frozen=True, slots=True)
class FigureBox(Generic[V]):
    """A figure in its place. A handler gives `outputs` what `show` or `empty` answers, in that order."""

    chart: Chart[V]
    value: Any
    finding: Any
    drawing: Any
    below: Any

    @property
    def outputs(self) -> list[Any]:
        """The components that a handler fills."""
        return [self.value, self.finding, self.drawing, self.below]

    def show(self, value: V | None, language: str = LANGUAGES[0]) -> list[Any]:
        """What `outputs` get so that `value` is shown; None empties the place."""
        return [value, *(gr.update(**part) for part in _parts(self.chart, value, language))]

    def empty(self, language: str = LANGUAGES[0]) -> list[Any]:
        """What `outputs` get where there is nothing yet."""
        return self.show(None, language)


def figure(words: Words, chart: Chart[V], elem_id: str, value: V | None = None) -> FigureBox[V]:
    """A place for `chart` inside the current layout; `value` is what it shows at first, in English."""
    above, drawn, under = _parts(chart, value, LANGUAGES[0])
    with gr.Column(elem_id=elem_id, elem_classes=["figure"], min_width=0):
        kept = gr.State(value)
        finding = gr.HTML(**above, apply_default_css=False, elem_classes=["figure-head"])
        drawing = words.make(
            gr.Plot, {"label": f"figures.{chart.name}"}, **drawn, show_label=False, container=False,
            elem_classes=["figure-plot"],
        )  # fmt: skip
        below = gr.HTML(**under, apply_default_css=False, elem_classes=["figure-foot"])
    return FigureBox(chart, kept, finding, drawing, below)


def _parts(chart: Chart[V], value: V | None, language: str) -> list[dict[str, Any]]:
    """Properties of the three places: above, the drawing, below."""
    if value is None:
        return [{"value": ""}, {"value": None, "visible": False}, {"value": ""}]
    text = sections(language)["figures"]
    drawn = chart.figure(value, text, "light") if chart.figure else None
    return [
        {"value": str(head(chart, value, text))},
        {"value": drawn, "visible": drawn is not None},
        {"value": str(foot(chart, value, text))},
    ]
