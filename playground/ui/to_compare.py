"""From the Playground to Compare: the same prompt, with these settings as run A.

Knows both tabs, and no run.
"""

from typing import Any

import gradio as gr

from playground.core.decoding import InvalidSetting, validated
from playground.ui.controls import read_decoding
from playground.ui.presets import spec_of
from playground.ui.tab_compare import CompareTab
from playground.ui.tab_playground import PRIVATE, PlaygroundTab


def wire_to_compare(playground: PlaygroundTab, compare: CompareTab, tabs: Any) -> None:
    """Let the Playground's link fill the Compare tab and open it."""

    def carry(prompt: Any, mode: Any, system: Any, *settings: Any) -> list[Any]:
        try:
            decoding = validated(read_decoding(settings))
        except InvalidSetting:  # Compare opens with its own settings; Generate says what is wrong
            return [prompt, mode, system, *[gr.skip()] * 3, gr.update(selected="compare")]
        filled = [decoding.max_new_tokens, "own", spec_of(decoding)]
        return [prompt, mode, system, *filled, gr.update(selected="compare")]

    playground.to_compare.click(
        carry,
        [playground.prompt, playground.mode, playground.system, *playground.controls.inputs()],
        [
            compare.prompt,
            compare.mode,
            compare.system,
            compare.count,
            compare.presets[0],
            compare.specs[0],
            tabs,
        ],
        **PRIVATE,
    )
