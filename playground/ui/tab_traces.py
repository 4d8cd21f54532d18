"""The tab Traces: every run of this browser tab, those that ship and those that were brought, to be opened
on their stage, explored without a model, and saved.

Layout and wiring in one place. Knows the shelf, and nothing of what a trace holds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground.backends.hosted import Hosted, HostedRun
from playground.core.decoding import InvalidSetting, validated
from playground.core.printable import one_line
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.ui.compare_fields import fields_of_run
from playground.ui.controls import fields_of
from playground.ui.sentences import translated
from playground.ui.session import Tab, read_run, read_tab, send
from playground.ui.shelf import PLACES, Shelf
from playground.ui.shelf_list import KINDS, file_of, listing
from playground.ui.streaming import refusal
from playground.ui.tab_compare import CompareTab
from playground.ui.tab_kv import KvTab
from playground.ui.tab_playground import LIVE, PRIVATE, WHO, PlaygroundTab
from playground.ui.text import Words, say, whole
from playground.ui.theme import asset_url

READERS_LIMIT = 2
"""Files that are read at the same time: each takes a core for seconds."""

_ON_LOAD = """
const waiting = [], events = ['ready', 'choose', 'bring', 'export'];
let take = (packet) => waiting.push(packet);
watch('value', () => props.value && take(JSON.parse(props.value)));
const load = (name) => import(new URL(name, document.baseURI));
Promise.all([load('%(shelf)s'), load('%(page)s')]).then(([shelf]) => {
  const asked = (data) => ({...JSON.parse(window.firstToken.who()), ...data});
  take = shelf.mountShelf(element.querySelector('.shelf-root'), (name, data) => trigger(name, asked(data)));
  waiting.splice(0).forEach((packet) => take(packet));
  trigger('ready', asked({}));
});
"""


@dataclass(frozen=True, slots=True)
class TracesTab:
    """What the rest of the page needs of this tab: call `follow` once the page is laid out."""

    list: Any
    show: Callable[..., str]

    def follow(self, shown: Any, language: Any, who: Any) -> None:
        """`shown`: the listener of the tab coming into view; `language`: the `click` of that button."""
        for event in (shown, language):
            event(self.show, who, self.list, js=WHO, queue=False, **PRIVATE)


def traces_tab(
    words: Words, shelf: Shelf, playground: PlaygroundTab, compare: CompareTab, kv: KvTab, tabs: Any
) -> TracesTab:
    """Build the tab inside the current `gr.Tab`; what is opened is shown in one of the others."""
    with gr.Column(elem_id="traces"):
        words.make(gr.HTML, {"value": "traces.what"}, elem_classes=["note"])
        made = _shelf_html()
    stages = dict(zip(PLACES, (playground.stage, compare.stage, kv.race_stage), strict=True))
    outputs = [made, tabs, kv.navigation, *stages.values(), *playground.fields(), *compare.fields()]
    opener = _Opener(shelf, len(playground.fields()), len(compare.fields()))
    made.choose(opener.choose, None, outputs, **LIVE)
    made.bring(opener.bring, None, outputs, **LIVE | {"concurrency_limit": READERS_LIMIT})
    compare.stage.inspect(opener.lane, None, outputs, **LIVE)
    made.export(_export(shelf), None, made, **LIVE)

    def ready(event: gr.EventData) -> str:
        return _listed(shelf, read_tab(event._data))

    def show(asked_by: Any) -> str:
        return _listed(shelf, read_tab(asked_by))

    made.ready(ready, None, made, queue=False, **PRIVATE)
    return TracesTab(made, show)


def _shelf_html() -> Any:
    """The place of the shelf: its value takes packets; it triggers `ready`, `choose`, `bring` and `export`."""
    return gr.HTML(
        value="", html_template='<div class="shelf-root"></div>', apply_default_css=False, elem_id="shelf",
        js_on_load=_ON_LOAD % {"shelf": asset_url("traces.js"), "page": asset_url("page.js")},
    )  # fmt: skip


class _Opener:
    """Handlers that put a trace on its stage: each yields a value for every output, in their order."""

    def __init__(self, shelf: Shelf, fields: int, lanes: int = 0) -> None:
        self._shelf, self._fields, self._lanes = shelf, fields, lanes

    def choose(self, event: gr.EventData) -> Iterator[list[Any]]:
        """Open what the page asks for by its key."""
        tab = read_tab(event._data)
        try:
            hosted = self._shelf.open(_known(tab), _given(event).get("key"))
        except Refused as error:
            yield self._refused(tab, error)
            return
        yield from self._opened(tab, hosted, "")

    def lane(self, event: gr.EventData) -> Iterator[list[Any]]:
        """Open one lane of the comparison on the stage."""
        tab = read_tab(event._data)
        try:
            hosted = self._shelf.lane(_known(tab), read_run(event._data), _given(event).get("lane"))
        except Refused as error:
            yield self._values(None, "compare", send(refusal(error, tab)))
            return
        yield from self._opened(tab, hosted, "")

    def bring(self, event: gr.EventData) -> Iterator[list[Any]]:
        """Take a file, and open the first thing in it."""
        tab = read_tab(event._data)
        name, text = _given(event).get("name"), _given(event).get("text")
        try:
            hosted, notes = self._shelf.bring(
                _known(tab),
                one_line(name[:80]) if isinstance(name, str) else "?",
                text if isinstance(text, str) else "",
            )
        except Refused as error:
            yield self._refused(tab, error)
            return
        said = " ".join(translated(note, tab.language) for note in notes)
        yield from self._opened(tab, hosted[0], said)

    def _opened(self, tab: Tab, hosted: Hosted[Any], said: str) -> Iterator[list[Any]]:
        place = hosted.session.rpartition(".")[2]
        told = said or say(tab.language, "traces.opened")
        yield self._values({
            "list": listing(self._shelf, tab), "said": told, "opened": {"place": place, "run": hosted.id}
        })  # fmt: skip
        first = True
        for packet in self._shelf.service.follow(tab, hosted):
            asked = fields_of_run(hosted.request) if first and place == "compare" else None
            yield self._values(None, place, packet, _asked(hosted) if first else None, asked, switch=first)
            first = False

    def _refused(self, tab: Tab, error: Refused) -> list[Any]:
        return self._values({"error": translated(str(error), tab.language)})

    def _values(
        self,
        shelf: dict[str, Any] | None,
        place: str = "",
        packet: str = "",
        asked: list[Any] | None = None,
        lanes: list[Any] | None = None,
        switch: bool = False,
    ) -> list[Any]:
        tab = {"run": "playground", "compare": "compare", "race": "kv"}.get(place)
        return [
            gr.skip() if shelf is None else send(shelf),
            gr.update(selected=tab) if switch else gr.skip(),
            gr.update(selected="race") if switch and place == "race" else gr.skip(),
            *(packet if one == place else gr.skip() for one in PLACES),
            *(asked if asked is not None else [gr.skip()] * self._fields),
            *(lanes if lanes is not None else [gr.skip()] * self._lanes),
        ]


def _asked(hosted: Hosted[Any]) -> list[Any] | None:
    """The controls of the Playground as the run was asked with; None where they cannot be set so."""
    request: Request = hosted.request
    if not isinstance(hosted, HostedRun) or len(request.lanes) != 1:
        return None
    try:
        decoding = validated(request.lanes[0])
    except InvalidSetting:
        return None
    values = [request.prompt, "chat" if request.chat else "raw", request.system or "", *fields_of(decoding)]
    return [whole(value) if isinstance(value, str) else value for value in values]


def _export(shelf: Shelf) -> Callable[..., str]:
    def export(event: gr.EventData) -> str:
        tab, kind = read_tab(event._data), _given(event).get("kind")
        try:
            if kind not in KINDS:
                raise InvalidSetting(say(tab.language, "traces.no_kind"))
            return send({"file": file_of(shelf, _known(tab), _given(event).get("key"), kind)})
        except Refused as error:
            return send({"error": translated(str(error), tab.language)})

    return export


def _listed(shelf: Shelf, tab: Tab) -> str:
    return send({"list": listing(shelf, tab)})


def _given(event: gr.EventData) -> dict[str, Any]:
    data = event._data
    return data if isinstance(data, dict) else {}


def _known(tab: Tab) -> Tab:
    if not tab.token:
        raise InvalidSetting(say(tab.language, "errors.no_session"))
    return tab
