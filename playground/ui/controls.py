"""The settings block of the left card: how the next token is chosen, with reset and help on each.

`Controls.inputs` lists the components, `read_decoding` turns their values back into settings.
Knows no run.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
from markupsafe import Markup

from playground.core.decoding import Decoding, InvalidSetting
from playground.ui import presets
from playground.ui.text import Say, Words, choices, say

DEFAULTS = Decoding()

_SLIDERS: dict[str, tuple[float, float, float]] = {
    "temperature": (0, 2, 0.05),
    "top_k": (0, 200, 1),
    "top_p": (0, 1, 0.01),
    "min_p": (0, 1, 0.01),
    "repetition_penalty": (1, 2, 0.05),
}
"""Smallest, largest and step that a slider reaches."""

LAST = "repetition_penalty"
"""The one that is folded away; it acts in greedy decoding too."""

_ASIDE = """
element.addEventListener('click', (event) => {
  if (event.target.closest('.reset')) trigger('reset');
});
"""

_GREEDY_AFTER_ALL = """(strategy, temperature) => {
  document.body.classList.toggle('temperature-zero', strategy === 'sample' && +temperature === 0);
}"""


@dataclass(frozen=True, slots=True)
class Controls:
    """The components, in the order in which `read_decoding` takes their values."""

    strategy: Any
    sliders: dict[str, Any]
    seed: Any
    max_new_tokens: Any
    stop: Any
    suggested: Any

    def inputs(self) -> list[Any]:
        """The components whose values make one `Decoding`."""
        return [self.strategy, *self.sliders.values(), self.seed, self.max_new_tokens, self.stop]


def read_decoding(values: Sequence[Any], language: str = "en") -> Decoding:
    """The settings from the components' values; ranges are checked by whoever runs them.

    Raises `InvalidSetting` for a seed or a count that is not a whole number.
    """
    strategy, *numbers, seed, max_new_tokens, stop = values
    settings: dict[str, Any] = dict(zip(_SLIDERS, numbers, strict=True))
    settings["top_k"] = _whole(settings["top_k"], "top_k", language)
    return Decoding(
        strategy=strategy,
        seed=None if seed is None or not str(seed).strip() else _whole(seed, "seed", language),
        max_new_tokens=_whole(max_new_tokens, "max_new_tokens", language),
        stop=tuple(_unescaped(line) for line in str(stop or "").split("\n") if line),
        **settings,
    )


def fields_of(decoding: Decoding) -> list[Any]:
    """The reverse of `read_decoding`: the components' values that make `decoding`."""
    stop = "\n".join(text.replace("\n", "\\n").replace("\t", "\\t") for text in decoding.stop)
    seed = "" if decoding.seed is None else str(decoding.seed)
    numbers = [getattr(decoding, name) for name in _SLIDERS]
    return [decoding.strategy, *numbers, seed, decoding.max_new_tokens, stop]


def controls(words: Words) -> Controls:
    """Build the block inside the current column."""
    strategy = words.make(
        gr.Radio,
        {"label": "controls.strategy", "choices": choices("controls", ("greedy", "sample"))},
        value=DEFAULTS.strategy, elem_classes=["segmented"], elem_id="strategy",
    )  # fmt: skip
    with gr.Column(elem_id="sampling"):
        chips = _preset_chips(words)
        suggested = chips.pop("suggested")
        sliders = {name: _slider(words, name) for name in _SLIDERS if name != LAST}
        words.make(gr.HTML, {"value": "controls.temperature_zero"}, elem_id="temperature-zero")
    with gr.Row(elem_classes=["pair"]):
        seed = _field(words, "seed", gr.Textbox, "", placeholder="controls.seed_placeholder", max_length=20)
        count = _field(words, "max_new_tokens", gr.Number, DEFAULTS.max_new_tokens, precision=0)
    gr.HTML(
        value="", html_template='<output class="drawn-seed" aria-live="off"></output>', elem_id="drawn-seed"
    )
    with words.make(gr.Accordion, {"label": "controls.more"}, open=False, elem_classes=["fold"]):
        sliders[LAST] = _slider(words, LAST)
        stop = _field(words, "stop", gr.Textbox, "", lines=2, max_length=16_100)
    _wire(strategy, sliders, chips)
    return Controls(strategy, sliders, seed, count, stop, suggested)


def aside(words: Words, name: str, target: Any, default: object) -> None:
    """The reset and help buttons that belong to one control."""
    small = words.make(
        gr.HTML, {"value": lambda t: _aside_markup(t, name)},
        js_on_load=_ASIDE, apply_default_css=False, elem_classes=["aside"],
    )  # fmt: skip
    small.reset(None, js=f"() => {json.dumps(default)}", outputs=target, api_visibility="private")


def _aside_markup(speak: Say, name: str) -> str:
    label, text = speak(f"controls.{name}"), speak(f"help.{name}")
    return Markup(
        '<button type="button" class="reset" aria-label="{0}" title="{0}">↺</button>'
        '<button type="button" class="help" aria-label="{1}">?</button><span role="tooltip">{2}</span>'
    ).format(
        speak("controls.reset_of").format(name=label), speak("controls.help_on").format(name=label), text
    )


def _slider(words: Words, name: str) -> Any:
    low, high, step = _SLIDERS[name]
    value = getattr(DEFAULTS, name)
    with gr.Column(elem_classes=["control", "knob"]):
        made = words.make(
            gr.Slider, {"label": f"controls.{name}"},
            minimum=low, maximum=high, step=step, value=value, buttons=[], elem_id=f"control-{name}",
        )  # fmt: skip
        aside(words, name, made, value)
    return made


def _field(
    words: Words, name: str, kind: Any, value: object, placeholder: str = "", **properties: Any
) -> Any:
    texts: dict[str, Any] = {"label": f"controls.{name}"}
    if placeholder:
        texts["placeholder"] = placeholder
    with gr.Column(elem_classes=["control", "field"]):
        made = words.make(kind, texts, value=value, elem_id=f"control-{name}", **properties)
        aside(words, name, made, value)
    return made


def _preset_chips(words: Words) -> dict[str, Any]:
    with gr.Row(elem_classes=["chips"]):
        names = [name for name in presets.samplings() if name != "greedy"]
        return {
            name: words.make(
                gr.Button, {"value": f"presets.{name}"}, size="sm", elem_classes=[f"preset-{name}"]
            )
            for name in (*names, "suggested")
        }


def _wire(strategy: Any, sliders: dict[str, Any], chips: dict[str, Any]) -> None:
    for name, chip in chips.items():
        decoding = presets.samplings()[name]
        values = ["sample", *(getattr(decoding, setting) for setting in sliders)]
        chip.click(
            None,
            js=f"() => {json.dumps(values)}",
            outputs=[strategy, *sliders.values()],
            api_visibility="private",
        )
    gr.on(
        [strategy.change, sliders["temperature"].change],
        None,
        js=_GREEDY_AFTER_ALL,
        inputs=[strategy, sliders["temperature"]],
        api_visibility="private",
    )


def _whole(value: Any, name: str, language: str) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
        if isinstance(number, float) and number.is_integer():
            number = int(number)
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool):
        shown = str(value)[:40]
        raise InvalidSetting(
            say(language, "errors.whole", name=say(language, f"controls.{name}"), value=shown)
        )
    return number


def _unescaped(line: str) -> str:
    return line.replace("\\n", "\n").replace("\\t", "\t")
