"""What can be done with all runs of Compare at once: their seeds, sets kept in the browser, copies as text.

Built and wired around the fields of the tab; knows no run.
"""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from playground import catalog
from playground.backends.remote.backend import RemoteBackend
from playground.core.refusal import Refused
from playground.ui.lanes import LANES, Fields, read_fields, read_lanes
from playground.ui.saved_lanes import kept, label, one_more, restored
from playground.ui.session import read_tab, send
from playground.ui.streaming import Service, refusal
from playground.ui.tab_playground import PRIVATE, model_name, read_request
from playground.ui.text import Words, whole
from playground.views.copies import Comparison, as_command, as_curl, as_python

KINDS = ("python", "command", "curl")
ADDRESS_LIMIT = 2000
STORAGE = "first-token.lanes"

_HERE = (
    "(...values) => [...values.slice(0, -2), location.origin + location.pathname, window.firstToken.who()]"
)
_COPY = "(text) => { if (text) navigator.clipboard?.writeText(text).catch(() => {}); }"


@dataclass(frozen=True, slots=True)
class Rows:
    """The components of the lanes: the state that says which are shown, the rows, and what is in each."""

    shown: Any
    rows: list[Any]
    names: list[Any]
    specs: list[Any]

    @property
    def inputs(self) -> list[Any]:
        """What `read` takes."""
        return [self.shown, *self.names, *self.specs]

    @property
    def outputs(self) -> list[Any]:
        """What `updates` fills."""
        return [self.shown, *self.rows, *self.names, *self.specs]

    @staticmethod
    def read(values: tuple[Any, ...]) -> Fields:
        """The fields from values of `inputs`."""
        lanes = len(LANES)
        return read_fields(values[0], values[1 : 1 + lanes], values[1 + lanes : 1 + 2 * lanes])

    @staticmethod
    def updates(fields: Fields) -> list[Any]:
        """Values of `outputs`."""
        return [
            list(fields.shown),
            *(gr.update(visible=on) for on in fields.shown),
            *fields.names,
            *fields.specs,
        ]


class LaneTools:
    """The quiet row under the lanes."""

    def __init__(self, words: Words) -> None:
        with gr.Row(elem_classes=["chips", "lane-tools"]):
            self.seeds = {
                same: words.make(
                    gr.Button, {"value": f"compare.seeds_{'same' if same else 'different'}"}, size="sm"
                )
                for same in (True, False)
            }
            self.save = words.make(gr.Button, {"value": "compare.save"}, size="sm")
            self.saved = words.make(
                gr.Dropdown, {"label": "compare.saved"}, choices=[], value=None, visible=False,
                elem_id="saved-lanes",
            )  # fmt: skip
            self.kinds = {
                kind: words.make(
                    gr.Button, {"value": f"compare.copy_{kind}"}, size="sm", elem_id=f"copy-{kind}"
                )
                for kind in KINDS
            }
        self.address = gr.Textbox(visible=False)
        self.store = gr.BrowserState([], storage_key=STORAGE, secret=STORAGE)
        self.text = words.make(
            gr.Textbox, {"label": "compare.copied"}, visible=False, lines=2, max_lines=16,
            interactive=False, buttons=["copy"], elem_id="copy-text",
        )  # fmt: skip

    def wire(self, service: Service, rows: Rows, asked: list[Any], live: Any, who: Any) -> None:
        """Let the row act on `rows`; `asked` are model, prompt, mode, system and count."""
        for same, button in self.seeds.items():
            button.click(_seeding(same), rows.inputs, rows.outputs, **PRIVATE)
        self._wire_saved(rows)
        for kind, button in self.kinds.items():
            copied = button.click(
                _writing(service, kind), [*asked, *rows.inputs, self.address, who], [self.text, live],
                js=_HERE, **PRIVATE,
            )  # fmt: skip
            copied.then(None, self.text, None, js=_COPY, api_visibility="private")

    def _wire_saved(self, rows: Rows) -> None:
        def save(store: Any, *values: Any) -> tuple[Any, Any]:
            sets = one_more(kept(store), rows.read(values))
            return sets, _offer(sets)

        def pick(place: Any, store: Any, *values: Any) -> list[Any]:
            sets = kept(store)
            found = sets[place] if isinstance(place, int) and 0 <= place < len(sets) else None
            return rows.updates(restored(found) if found else rows.read(values))

        self.save.click(save, [self.store, *rows.inputs], [self.store, self.saved], **PRIVATE)
        self.saved.input(pick, [self.saved, self.store, *rows.inputs], rows.outputs, **PRIVATE)
        self.store.change(lambda store: _offer(kept(store)), self.store, self.saved, **PRIVATE)


def _offer(sets: list[list[str]]) -> Any:
    choices = [(label(specs), place) for place, specs in enumerate(sets)]
    return gr.update(choices=choices, value=None, visible=bool(sets))


def _seeding(same: bool) -> Any:
    def seed(*values: Any) -> list[Any]:
        return Rows.updates(Rows.read(values).seeded(same=same))

    return seed


def _writing(service: Service, kind: str) -> Any:
    def write(model: Any, prompt: Any, mode: Any, system: Any, count: Any, *rest: Any) -> list[Any]:
        *values, address, asked_by = rest
        tab = read_tab(asked_by)
        fields = Rows.read(tuple(values))
        try:
            lanes = read_lanes(fields.shown, fields.names, fields.specs, count, tab.language)
        except Refused as error:
            return [gr.skip(), send(refusal(error, tab))]
        request = read_request(prompt, mode, system, lanes)
        specs = tuple(spec for on, spec in zip(fields.shown, fields.specs, strict=True) if on)
        name = model_name(model) or service.models.default
        here = service.models.loaded(name)
        server = here.server if isinstance(here, RemoteBackend) else None
        asked = Comparison(
            request.prompt, specs, lanes, int(count), request.chat, request.system,
            None if server or name == service.models.default else name, server,
        )  # fmt: skip
        text = _written(kind, asked, str(address or "")[:ADDRESS_LIMIT], *_model(service, name))
        return [gr.update(value=whole(text), visible=True), gr.skip()]

    return write


def _written(kind: str, asked: Comparison, address: str, model: str, dtype: str) -> str:
    if kind == "command":
        return as_command(asked)
    return as_curl(asked, address) if kind == "curl" else as_python(asked, model, dtype)


def _model(service: Service, name: str) -> tuple[str, str]:
    """The name by which transformers finds the model, and the numbers that it runs in here."""
    known, backend = catalog.model(name), service.models.loaded(name)
    if isinstance(backend, RemoteBackend):
        return backend.facts().name, "float32"
    return known.hub if known else name, backend.facts().dtype if backend else "float32"
