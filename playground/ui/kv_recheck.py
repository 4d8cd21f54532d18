"""A button that computes old keys and values anew and says whether they changed.

Layout and wiring in one place. Knows the experiments of the page, and nothing of how it is measured.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.backends.protocol import Backend, BackendError, Measurer
from playground.core.control import Control
from playground.core.refusal import Refused
from playground.ui.experiments import Done, Experiments, Progress, Told
from playground.ui.sentences import translated
from playground.ui.session import read_tab
from playground.ui.tab_playground import LIVE, PRIVATE, WHO, model_name
from playground.ui.text import Words, say, sections
from playground.views.measuring import conditions_line, progress_line, refused_line
from playground.views.rechecking import recheck_line

NAME = "kv_recheck"


@dataclass(frozen=True, slots=True)
class Recheck:
    """The card; `follow` shows the session's latest result again at an event."""

    experiments: Experiments
    start: Any
    line: Any
    who: Any

    def follow(self, event: Any) -> None:
        """`event`: a listener, as `Tab.select` or a button's `click`."""
        event(_kept(self.experiments), self.who, self.line, js=WHO, queue=False, **PRIVATE)


def build_recheck(words: Words, who: Any, model: Any, experiments: Experiments) -> Recheck:
    """Build the card in the current layout."""
    with gr.Column(elem_classes=["card"], elem_id="race-recheck"):
        words.make(gr.HTML, {"value": "race.recheck_note"}, elem_classes=["note"])
        with gr.Row(elem_classes=["measure"]):
            start = words.make(
                gr.Button, {"value": "race.recheck"}, size="sm", elem_classes=["quiet-button"], min_width=0
            )
        line = gr.HTML("", apply_default_css=False, elem_id="recheck-line")
    start.click(_go(experiments), [model, who], line, js=WHO, **LIVE)
    return Recheck(experiments, start, line, who)


def measure(backend: Backend, control: Control) -> Iterator[Any]:
    """The experiment on a loaded model; raises `Refused`."""
    if not isinstance(backend, Measurer):
        raise BackendError("This model does not run here, so nothing was computed anew; choose another.")
    return backend.experiment("recheck", control)


def _go(experiments: Experiments) -> Callable[..., Iterator[str]]:
    def go(model: Any, asked_by: Any) -> Iterator[str]:
        tab = read_tab(asked_by)
        try:
            for told in experiments.run(tab, NAME, model_name(model), measure):
                yield said(told, tab.language)
        except Refused as error:
            yield str(refused_line(translated(str(error), tab.language)))

    return go


def said(told: Told, language: str) -> str:
    """One message of the experiment as markup."""
    if isinstance(told, Done):
        return found_markup(told.result, language) if told.result is not None else ""
    if not isinstance(told, Progress):
        return str(progress_line(say(language, "race.recheck_waiting"), None))
    done, total = told.latest.done, told.latest.total
    sentence = say(language, "race.rechecking", done=f"{done:,}", total=f"{total:,}")
    return str(progress_line(sentence, done / max(1, total)))


def found_markup(found: Any, language: str) -> str:
    """The finding, and what it was measured on."""
    text = sections(language)
    return str(recheck_line(found, text["race"]) + conditions_line(found.conditions, text["phases"]))


def _kept(experiments: Experiments) -> Callable[[Any], Any]:
    def kept(asked_by: Any) -> Any:
        tab = read_tab(asked_by)
        found = experiments.kept(tab, NAME)
        return found_markup(found, tab.language) if found is not None else gr.skip()

    return kept
