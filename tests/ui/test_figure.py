"""The figure's component: what a handler gives it, and what it looks like empty."""

from typing import Any

import gradio as gr
import pytest

from playground.ui.figure import figure
from playground.ui.text import Words
from tests.figures_made import HOSTILE, MADE


@pytest.mark.parametrize("name", ["prefill", "drilldown"])
def test_showing_fills_every_place(name: str) -> None:
    chart, make = MADE[name]
    with gr.Blocks():
        box = figure(Words(), chart, "one")
    value, finding, drawing, below = box.show(make(), "en")
    assert len(box.outputs) == 4 and value == make()
    assert 'class="finding"' in finding["value"] and "text/csv" in below["value"]
    assert drawing["visible"] == (chart.figure is not None)


def test_empty_shows_nothing_and_keeps_nothing() -> None:
    chart, _ = MADE["prefill"]
    with gr.Blocks():
        box = figure(Words(), chart, "one")
    value, finding, drawing, below = box.empty()
    assert value is None and finding["value"] == below["value"] == "" and drawing["visible"] is False
    assert box.drawing.visible is False and box.show(None) == box.empty()


def test_another_language_says_the_same_value_again() -> None:
    chart, make = MADE["steps"]
    with gr.Blocks():
        box = figure(Words(), chart, "one", make())
    again: list[Any] = box.show(box.value.value, "zh")
    assert "倍" in again[1]["value"] and "times" not in again[1]["value"]


def test_a_first_value_stands_in_the_page_as_built_and_names_are_escaped() -> None:
    chart, make = MADE["growth"]
    with gr.Blocks():
        box = figure(Words(), chart, "one", make())
    assert box.drawing.visible and HOSTILE not in box.finding.value and "&lt;img" in box.finding.value
