"""Many draws: one run of Compare made again and again from one prefill, seed after seed.

Built and wired around the fields of the tab; the stage draws the tree. Knows no run.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import gradio as gr

from playground.core.decoding import InvalidSetting
from playground.core.refusal import Refused
from playground.core.tree import many_draws
from playground.ui.lane_tools import Rows
from playground.ui.lanes import LANES, read_lanes
from playground.ui.session import Tab, read_tab, send
from playground.ui.streaming import Service, refusal
from playground.ui.tab_playground import LIVE, WHO, model_name, read_request
from playground.ui.text import Say, Words, say

COUNTS = (8, 16, 32, 64)
FIRST_COUNT = 16
CANDIDATES = 1
"""Recorded at each step of a draw: the tree is made of what was chosen, and 64 steps come at a time."""


class Draws:
    """Which run, how often, and the button."""

    def __init__(self, words: Words) -> None:
        with gr.Row(elem_classes=["draws"], elem_id="draws"):
            self.lane = words.make(
                gr.Dropdown, {"label": "compare.draws_of", "choices": _letters},
                value="B", elem_id="draws-lane", min_width=120,
            )  # fmt: skip
            self.count = words.make(
                gr.Dropdown, {"label": "compare.draws_count"},
                choices=list(COUNTS), value=FIRST_COUNT, elem_id="draws-count", min_width=120,
            )  # fmt: skip
            self.go = words.make(gr.Button, {"value": "compare.draws"}, size="sm", elem_id="draw-many")

    def wire(self, service: Service, rows: Rows, asked: list[Any], live: Any, who: Any, place: str) -> None:
        """Let the button run; `asked` are model, prompt, mode, system and count of tokens."""
        given = [self.lane, self.count, *asked, *rows.inputs, who]
        self.go.click(_drawing(service, place), given, live, js=WHO, **LIVE)


def _letters(speak: Say) -> list[tuple[str, str]]:
    return [(speak("compare.lane").format(letter=letter), letter) for letter in LANES]


def _drawing(service: Service, place: str) -> Callable[..., Iterator[str]]:
    def draw(
        lane: Any, times: Any, model: Any, prompt: Any, mode: Any, system: Any, count: Any, *rest: Any
    ) -> Iterator[str]:
        *values, asked_by = rest
        tab = read_tab(asked_by)
        try:
            lanes = _lanes(lane, times, tuple(values), count, tab)
        except Refused as error:
            yield send(refusal(error, tab))
            return
        request = replace(read_request(prompt, mode, system, lanes), top_n=CANDIDATES)
        yield from service.generate(tab, place, model_name(model), request)

    return draw


def _lanes(lane: Any, times: Any, values: tuple[Any, ...], count: Any, tab: Tab) -> tuple[Any, ...]:
    """The lanes of all draws; raises `InvalidSetting`."""
    if lane not in tuple(LANES) or times not in COUNTS:
        raise InvalidSetting(say(tab.language, "compare.no_draws"))
    fields, place = Rows.read(values), LANES.index(lane)
    alone = [i == place for i in range(len(LANES))]
    (decoding,) = read_lanes(alone, fields.names, fields.specs, count, tab.language)
    return many_draws(decoding, int(times))
