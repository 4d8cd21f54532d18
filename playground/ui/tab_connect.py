"""The tab Connect: the address of a model server, what it can do, and the way back to this machine.

Layout and wiring in one place. A key goes from its field to the server and is shown nowhere; the field is
emptied. Knows no API of a server.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import gradio as gr

from playground.backends.remote.address import Address
from playground.backends.remote.backend import RemoteBackend, connect
from playground.backends.remote.reach import Reach
from playground.core.refusal import Refused
from playground.ui.models import Models
from playground.ui.sentences import translated
from playground.ui.session import Tab, read_tab, send
from playground.ui.streaming import Service
from playground.ui.tab_playground import LIVE, PRIVATE, WHO, PlaygroundTab
from playground.ui.text import Words, say
from playground.views.connection import found_table, told
from playground.views.packets import ready_packet

Allowed = Callable[[Address], Reach | None]
"""How far a visitor's connection to that address may go, None where it may not be made."""

TABS_LIMIT = 1000
NAME_LIMIT = 500


@dataclass(slots=True)
class Connections:
    """Which connection each browser tab has: one at a time."""

    models: Models
    _names: dict[str, str] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, tab: Tab, backend: RemoteBackend) -> str:
        """The tab's connection from now on; the one before goes."""
        self.drop(tab)
        name = self.models.connect(backend)
        with self._lock:
            self._names[tab.token] = name
            while len(self._names) > TABS_LIMIT:
                self.models.disconnect(self._names.pop(next(iter(self._names))))
        return name

    def of(self, tab: Tab) -> RemoteBackend | None:
        """The tab's backend, while it is connected."""
        name = self._names.get(tab.token)
        found = self.models.loaded(name) if name is not None else None
        return found if isinstance(found, RemoteBackend) else None

    def drop(self, tab: Tab) -> None:
        """Forget the tab's connection and with it the key."""
        with self._lock:
            name = self._names.pop(tab.token, None)
        if name is not None:
            self.models.disconnect(name)


@dataclass(frozen=True, slots=True)
class ConnectTab:
    """What the rest of the page needs of this tab: call `follow` once the page is laid out."""

    report: Any
    show: Callable[..., str]

    def follow(self, language: Any, who: Any) -> None:
        """`language`: the `click` of that button."""
        language(self.show, who, self.report, js=WHO, queue=False, **PRIVATE)


def connect_tab(
    words: Words, service: Service, who: Any, playground: PlaygroundTab, allowed: Allowed
) -> ConnectTab:
    """Build the tab inside the current `gr.Tab`."""
    with gr.Column(elem_id="connect", elem_classes=["card"]):
        words.make(gr.HTML, {"value": "connect.what"}, elem_classes=["note"])
        with gr.Row(elem_classes=["connect-fields"]):
            address = words.make(
                gr.Textbox, {"label": "connect.address"}, placeholder="http://127.0.0.1:8000",
                elem_id="connect-address", max_lines=1,
            )  # fmt: skip
            key = words.make(
                gr.Textbox, {"label": "connect.key", "placeholder": "connect.key_placeholder"},
                type="password", elem_id="connect-key", max_lines=1,
            )  # fmt: skip
            model = words.make(
                gr.Textbox, {"label": "connect.model", "placeholder": "connect.model_placeholder"},
                elem_id="connect-model", max_lines=1,
            )  # fmt: skip
        with gr.Row(elem_classes=["connect-go"]):
            go = words.make(gr.Button, {"value": "connect.go"}, variant="primary", elem_id="connect-go")
            back = words.make(gr.Button, {"value": "connect.back"}, elem_id="connect-back")
        report = gr.HTML("", elem_id="connect-report")
    connections = Connections(service.models)
    handlers = _Handlers(service.models, connections, allowed)
    outputs = [report, key, playground.model, playground.stage]
    asked = [address, key, model, who]
    go.click(handlers.connect, asked, outputs, js=WHO, **LIVE)
    address.submit(handlers.connect, asked, outputs, js=WHO, **LIVE)
    back.click(handlers.back, who, outputs, js=WHO, **PRIVATE)
    return ConnectTab(report, handlers.show)


class _Handlers:
    """Each yields or returns a value for the report, the key's field, the model picker and the stage."""

    def __init__(self, models: Models, connections: Connections, allowed: Allowed) -> None:
        self._models, self._connections, self._allowed = models, connections, allowed

    def connect(self, address: Any, key: Any, model: Any, asked_by: Any) -> Iterator[list[Any]]:
        """Probe the server and let the page run on it; where that fails nothing changes."""
        tab = read_tab(asked_by)
        yield [told(say(tab.language, "connect.asking")), gr.skip(), gr.skip(), gr.skip()]
        try:
            if not tab.token:
                raise Refused(say(tab.language, "errors.no_session"))
            wanted = model.strip()[:NAME_LIMIT] if isinstance(model, str) else ""
            backend = connect(address, key, wanted or None, self._allowed)
        except Refused as error:
            sentence = translated(str(error), tab.language)
            yield [told(sentence, bad=True), gr.skip(), gr.skip(), gr.skip()]
            return
        name = self._connections.take(tab, backend)
        title = f"{backend.facts().name} @ {backend.address}"
        picker = gr.update(choices=[(title, name), *self._choices()], value=name)
        yield [self._report(backend, tab), "", picker, send(ready_packet(backend.facts()))]

    def back(self, asked_by: Any) -> list[Any]:
        """The model of this machine again."""
        tab = read_tab(asked_by)
        self._connections.drop(tab)
        here = self._models.loaded()
        ready = gr.skip() if here is None else send(ready_packet(here.facts()))
        picker = gr.update(choices=self._choices(), value=self._models.default)
        return [told(say(tab.language, "connect.back_here")), "", picker, ready]

    def show(self, asked_by: Any) -> Any:
        """The report again, in another language."""
        tab = read_tab(asked_by)
        backend = self._connections.of(tab)
        return "" if backend is None else self._report(backend, tab)

    def _report(self, backend: RemoteBackend, tab: Tab) -> str:
        abilities = [(name, one.there, one.reason) for name, one in backend.capabilities.items()]
        return found_table(backend.facts(), backend.address, abilities, tab.language)

    def _choices(self) -> list[tuple[str, str]]:
        return [(name.rpartition("/")[2], name) for name in self._models.offered]
