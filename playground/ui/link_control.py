"""What a tab shows of links: the control that copies one, and the line that says what one has filled in.

The address is made in the browser (assets/links.js) and read by `links`. Knows no tab.
"""

import json
from collections.abc import Mapping
from typing import Any

import gradio as gr
from markupsafe import Markup

from playground.ui.text import Say, Words

_CONTROL = """
element.addEventListener('click', (event) => { if (event.target.closest('.copy-link')) trigger('link'); });
"""

_NOTE = """
const say = () => { element.querySelector('.link-note').textContent = props.value ?? ''; };
watch('value', say);
say();
"""


def copying(words: Words, tab: str, inputs: Mapping[str, Any]) -> Any:
    """The control that copies an address of what `inputs`, by their names in the link, hold."""
    made = words.make(
        gr.HTML, {"value": _control}, js_on_load=_CONTROL, apply_default_css=False,
        elem_id=f"link-{tab}", elem_classes=["link-control"],
    )  # fmt: skip
    made.link(
        None, list(inputs.values()), None,
        js=f"(...values) => window.firstToken.copyLink({json.dumps(tab)}, {json.dumps(list(inputs))}, values)",
        api_visibility="private",
    )  # fmt: skip
    return made


def note(elem_id: str) -> Any:
    """One line for what a link did; text only, and no height while there is nothing to say."""
    return gr.HTML(
        value="", html_template='<p class="link-note" role="status"></p>', js_on_load=_NOTE,
        apply_default_css=False, elem_id=elem_id, elem_classes=["link-said"],
    )  # fmt: skip


def _control(speak: Say) -> str:
    return Markup(
        '<span class="aside"><button type="button" class="copy-link">{0}</button>'
        '<button type="button" class="help" aria-label="{1}">?</button><span role="tooltip">{2}</span></span>'
        '<output class="link-copied"></output><input class="link-address" readonly hidden aria-label="{3}">'
    ).format(speak("links.copy"), speak("links.help_on"), speak("links.help"), speak("links.address"))
