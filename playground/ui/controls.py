"""The settings block of the left card: how the next token is chosen, with reset and help on each.

`Controls.inputs` lists the components, `read_decoding` turns their values back into settings.
Knows no run.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, get_args

import gradio as gr
from markupsafe import Markup

from playground.core.decoding import Decoding, InvalidSetting, Scope
from playground.core.stages import BY_HAND, ORDERS, read_order, write_order
from playground.ui import presets
from playground.ui.text import Say, Words, choices, say

DEFAULTS = Decoding()

_SLIDERS: dict[str, tuple[float, float, float]] = {
    "temperature": (0, 2, 0.05),
    "top_k": (0, 200, 1),
    "top_p": (0, 1, 0.01),
    "min_p": (0, 1, 0.01),
    "repetition_penalty": (1, 2, 0.05),
    "typical_p": (0, 1, 0.01),
}
"""Smallest, largest and step that a slider reaches."""

FIELDS = (
    "strategy", *_SLIDERS, "seed", "max_new_tokens", "stop", "order", "penalty_scope",
)  # fmt: skip
"""The settings by name, in the order in which `Controls.inputs` and `read_decoding` have them."""

FOLDED = ("repetition_penalty", "typical_p")
"""Those that are folded away; the penalty acts in greedy decoding too."""

_ASIDE = """
element.addEventListener('click', (event) => {
  if (event.target.closest('.reset')) trigger('reset');
});
"""

_GREEDY_AFTER_ALL = """(strategy, temperature) => {
  document.body.classList.toggle('temperature-zero', strategy === 'sample' && +temperature === 0);
}"""


_SHOW_ORDER = """(order) => { document.body.classList.toggle('other-order', order !== 'transformers') }"""


@dataclass(frozen=True, slots=True)
class Controls:
    """The components, in the order in which `read_decoding` takes their values."""

    strategy: Any
    sliders: dict[str, Any]
    seed: Any
    max_new_tokens: Any
    stop: Any
    order: Any
    penalty_scope: Any
    suggested: Any

    def inputs(self) -> list[Any]:
        """The components whose values make one `Decoding`."""
        texts = [self.seed, self.max_new_tokens, self.stop, self.order, self.penalty_scope]
        return [self.strategy, *self.sliders.values(), *texts]


def read_decoding(values: Sequence[Any], language: str = "en") -> Decoding:
    """The settings from the components' values; ranges are checked by whoever runs them.

    Raises `InvalidSetting` for a seed or a count that is not a whole number.
    """
    strategy, *numbers, seed, max_new_tokens, stop, order, penalty_scope = values
    settings: dict[str, Any] = dict(zip(_SLIDERS, numbers, strict=True))
    settings["top_k"] = _whole(settings["top_k"], "top_k", language)
    return Decoding(
        strategy=strategy,
        seed=None if seed is None or not str(seed).strip() else _whole(seed, "seed", language),
        max_new_tokens=_whole(max_new_tokens, "max_new_tokens", language),
        stop=tuple(_unescaped(line) for line in str(stop or "").split("\n") if line),
        order=read_order(str(order)),
        penalty_scope=penalty_scope,
        **settings,
    )


def fields_of(decoding: Decoding) -> list[Any]:
    """The reverse of `read_decoding`: the components' values that make `decoding`."""
    stop = "\n".join(text.replace("\n", "\\n").replace("\t", "\\t") for text in decoding.stop)
    seed = "" if decoding.seed is None else str(decoding.seed)
    numbers = [getattr(decoding, name) for name in _SLIDERS]
    written = write_order(decoding.order)
    return [
        decoding.strategy, *numbers, seed, decoding.max_new_tokens, stop, written, decoding.penalty_scope,
    ]  # fmt: skip


def read_field(name: str, text: str) -> Any:
    """What the control `name` holds when it shows `text`; raises `InvalidSetting` where it cannot.

    Only a link can hold what no control takes, so nobody reads the sentence; its setting is left out.
    """
    if name == "order" and text not in ORDERS:
        raise InvalidSetting("An order without a name cannot be chosen in the page.")
    if name not in _SLIDERS:
        return text
    low, high, _ = _SLIDERS[name]
    try:
        number = float(text)
    except ValueError:
        raise InvalidSetting(f"{name} takes a number.") from None
    if not low <= number <= high:
        raise InvalidSetting(f"{name} goes from {low:g} to {high:g} in the page.")
    return number + 0.0  # no minus before a zero


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
        sliders = {name: _slider(words, name) for name in _SLIDERS if name not in FOLDED}
        words.make(gr.HTML, {"value": "controls.temperature_zero"}, elem_id="temperature-zero")
    with gr.Row(elem_classes=["pair"]):
        seed = _field(
            words, "seed", gr.Textbox, "", {"placeholder": "controls.seed_placeholder"}, max_length=20
        )
        count = _field(words, "max_new_tokens", gr.Number, DEFAULTS.max_new_tokens, precision=0)
    gr.HTML(
        value="", html_template='<output class="drawn-seed" aria-live="off"></output>', elem_id="drawn-seed"
    )
    with words.make(gr.Accordion, {"label": "controls.more"}, open=False, elem_classes=["fold"]):
        sliders |= {name: _slider(words, name) for name in FOLDED}
        scope = _field(
            words, "penalty_scope", gr.Radio, DEFAULTS.penalty_scope,
            {"choices": choices("scopes", get_args(Scope))}, elem_classes=["segmented"],
        )  # fmt: skip
        order = _order(words)
        stop = _field(words, "stop", gr.Textbox, "", lines=2, max_length=16_100)
    _wire(strategy, sliders, order, chips)
    return Controls(strategy, sliders, seed, count, stop, order, scope, suggested)


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
    words: Words, name: str, kind: Any, value: object, texts: dict[str, Any] | None = None, **properties: Any
) -> Any:
    """One field with its asides; `texts` are those that follow the language beside the label."""
    texts = {"label": f"controls.{name}"} | (texts or {})
    with gr.Column(elem_classes=["control", "field"]):
        made = words.make(kind, texts, value=value, elem_id=f"control-{name}", **properties)
        aside(words, name, made, value)
    return made


def _order(words: Words) -> Any:
    """The orders by name, and below them the stages of the one that is chosen."""
    made = _field(words, "order", gr.Dropdown, write_order(DEFAULTS.order), choices=list(ORDERS))
    for number, stages in enumerate(ORDERS.values()):
        words.make(gr.HTML, {"value": partial(_stages_line, stages)}, elem_id=f"order-{number}")
    made.change(None, made, None, js=_SHOW_ORDER, api_visibility="private")
    return made


def _stages_line(stages: Sequence[str], speak: Say) -> str:
    return Markup(" › ").join(speak(f"controls.{stage}") for stage in stages if stage not in BY_HAND)


def _preset_chips(words: Words) -> dict[str, Any]:
    with gr.Row(elem_classes=["chips"]):
        names = [name for name in presets.samplings() if name != "greedy"]
        return {
            name: words.make(
                gr.Button, {"value": f"presets.{name}"}, size="sm", elem_classes=[f"preset-{name}"]
            )
            for name in (*names, "suggested")
        }


def _wire(strategy: Any, sliders: dict[str, Any], order: Any, chips: dict[str, Any]) -> None:
    for name, chip in chips.items():
        decoding = presets.samplings()[name]
        values = ["sample", *(getattr(decoding, name) for name in sliders), write_order(decoding.order)]
        chip.click(
            None,
            js=f"() => {json.dumps(values)}",
            outputs=[strategy, *sliders.values(), order],
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
