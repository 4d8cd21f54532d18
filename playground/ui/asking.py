"""What a stage asks about a run by the name of the question, and who answers it.

A handler takes the service, the tab and what the stage sent, and returns a packet; a question that nobody knows
gets none. Knows no component.
"""

from collections.abc import Callable, Mapping

from playground.ui.inspecting import prompt_answer, waterfall_answer
from playground.ui.own_words import pieces_answer
from playground.ui.session import Tab, read_tab, send
from playground.ui.streaming import Service
from playground.ui.what_if import text_answer, what_if_answer, what_if_run_answer
from playground.views.packets import Packet

Answer = Callable[[Service, Tab, object], Packet]

ANSWERS: Mapping[str, Answer] = {
    "waterfall": waterfall_answer, "prompt": prompt_answer,
    "whatif": what_if_answer, "whatif_run": what_if_run_answer, "text": text_answer, "pieces": pieces_answer,
}  # fmt: skip


def answered(service: Service, data: object) -> str:
    """The stage's value that answers what it asked."""
    what = data.get("what") if isinstance(data, dict) else None
    answer = ANSWERS.get(what) if isinstance(what, str) else None
    return send({} if answer is None else answer(service, read_tab(data), data))
