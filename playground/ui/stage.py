"""The live stage as a plain `gr.HTML`: a constant template, and a script that only adapts.

All that is drawn is drawn by `assets/stage.js`, which knows no gradio; packets go in as JSON
strings through the component's value, wishes come out as events. Knows no run.
"""

from typing import Any, Literal

import gradio as gr

from playground.ui.theme import asset_url

Layout = Literal["run", "compare", "race", "work"]

_ON_LOAD = """
const waiting = [], events = ['ready', 'gap', 'language', 'steer', 'ask', 'inspect'];
let take = (packet) => waiting.push(packet);
watch('value', () => props.value && take(props.value));
import(new URL('%(url)s', document.baseURI)).then(async (page) => {
  take = await page.adapt({element, trigger, layout: '%(layout)s'});
  waiting.splice(0).forEach((packet) => take(packet));
});
"""


def stage(layout: Layout, elem_id: str) -> Any:
    """A stage: its value takes packets; it triggers `ready`, `gap`, `language`, `steer`, `ask` and `inspect`."""
    return gr.HTML(
        value="",
        html_template='<div class="stage-root"></div>',
        js_on_load=_ON_LOAD % {"url": asset_url("page.js"), "layout": layout},
        apply_default_css=False,
        elem_id=elem_id,
        elem_classes=["stage"],
    )
