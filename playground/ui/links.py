"""Links: what a page asks for, in its address, and what of an address this page takes over.

An address ends in `#first-token=1&prompt=...&temperature=0.8&...`, which no server is sent by the
browser; the page writes it (assets/links.js) and hands it in here. Everything in it is untrusted: it
is bounded, goes through the code that reads the controls, and what is refused is named in a sentence.
A link fills the page and starts nothing. Settings are promised, not the same tokens on another device.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import gradio as gr

from playground.core.decoding import Decoding, InvalidSetting, parse_decoding, validated
from playground.core.printable import one_line
from playground.ui import presets
from playground.ui.controls import FIELDS, fields_of, read_decoding, read_field
from playground.ui.lanes import LANES
from playground.ui.models import Models
from playground.ui.session import read_tab
from playground.ui.tab_compare import CompareTab
from playground.ui.tab_playground import MODES, PRIVATE, PlaygroundTab
from playground.ui.text import say, whole
from playground.ui.theme import asset_url

VERSION = "1"
CHARACTERS_LIMIT = 32_000
PARTS_LIMIT = 40
PLACES = ("playground", "compare")
NAME_LIMIT = 100

_ARRIVING = """
import(new URL('%s', document.baseURI)).then((page) => page.arrivals((data) => trigger('arrive', data)));
"""


class BrokenLink(ValueError):
    """An address that is no link of ours; the message is a key of the section `links`."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a link asks for, nothing of it checked. `settings` are texts by name, `lanes` specs."""

    place: str
    settings: Mapping[str, str]
    lanes: tuple[str, ...] = ()

    def get(self, name: str, limit: int = CHARACTERS_LIMIT) -> str | None:
        """One text, None where the link has it not."""
        text = self.settings.get(name)
        return None if text is None else text[:limit]


@dataclass(frozen=True, slots=True)
class Filled:
    """Values for the page's fields in their order, and the keys of the labels of what was refused."""

    values: list[Any]
    refused: list[str]


def read_link(text: object) -> Asked:
    """Take a link apart; raises `BrokenLink`."""
    if not isinstance(text, str) or len(text) > CHARACTERS_LIMIT:
        raise BrokenLink("links.broken")
    try:
        pairs = parse_qsl(whole(text), keep_blank_values=True, max_num_fields=PARTS_LIMIT, errors="replace")
    except ValueError:
        raise BrokenLink("links.broken") from None
    settings = dict(pairs)
    version = settings.get("first-token", "")
    if version != VERSION:
        raise BrokenLink("links.newer" if version.isdecimal() else "links.broken")
    place = settings.get("tab", PLACES[0])
    if place not in PLACES:
        raise BrokenLink("links.broken")
    lanes = tuple(value for name, value in pairs if name == "lane")
    return Asked(place, settings, lanes)


def fill_playground(asked: Asked) -> Filled:
    """Prompt, mode, system prompt and every control, as `PlaygroundTab.fields` has them."""
    mode, refused = _mode(asked)
    values = fields_of(Decoding())
    for place, name in enumerate(FIELDS):
        text = asked.get(name)
        if text is None:
            continue
        try:
            changed = [*values[:place], read_field(name, text), *values[place + 1 :]]
            values = fields_of(validated(read_decoding(changed)))
        except InvalidSetting:
            refused.append(f"controls.{name}")
    return Filled([asked.get("prompt") or "", mode, asked.get("system") or "", *values], refused)


def fill_compare(asked: Asked) -> Filled:
    """Prompt, mode, system prompt and length, then whether each run is shown, its preset and its spec."""
    mode, refused = _mode(asked)
    count = Decoding().max_new_tokens
    try:
        text = asked.get("max_new_tokens") or str(count)
        count = validated(Decoding(max_new_tokens=int(text))).max_new_tokens
    except ValueError:
        refused.append("controls.max_new_tokens")
    specs = []
    for spec in asked.lanes[: len(LANES)]:
        try:
            parse_decoding(spec)
            specs.append(spec)
        except InvalidSetting:
            refused.append("links.a_run")
    if len(asked.lanes) > len(LANES):
        refused.append("links.more_runs")
    specs += ["greedy"] * (2 - len(specs))
    empty = len(LANES) - len(specs)
    names = [*map(presets.preset_of, specs), *[gr.skip()] * empty]
    shown = [True] * len(specs) + [False] * empty
    first = [asked.get("prompt") or "", mode, asked.get("system") or "", count]
    return Filled([*first, shown, *names, *specs, *[gr.skip()] * empty], list(dict.fromkeys(refused)))


def offered(models: Models, name: str) -> str | None:
    """The model of this page that a link means by `name`: its own name, or the last part of a path."""
    return next(
        (one for one in models.offered if one == name or one.replace("\\", "/").rpartition("/")[2] == name),
        None,
    )


def about_model(asked: Asked, models: Models, now: str | None, language: str) -> tuple[str | None, str]:
    """The model to pick, None for none, and a sentence where it is not the one that the link was made with.

    A model that is not offered here is never fetched because a link names it.
    """
    name = asked.get("model", NAME_LIMIT)
    if not name or not _title(name):
        return None, ""
    found = offered(models, name)
    if found is None:
        here = _title(now or models.default)
        return None, say(language, "links.no_model", name=_title(name), here=here)
    backend = models.loaded(found)
    if backend is None:
        return found, say(language, "links.model_loads", name=_title(found)) if found != now else ""
    there, loaded = asked.get("revision", NAME_LIMIT), backend.facts().revision
    if there and loaded and there != loaded:
        return found, say(language, "links.revision", there=one_line(there), here=one_line(loaded))
    return found, ""


def sentence(filled: Filled, model: str, language: str) -> str:
    """What the reader is told: that the link is in place, and what of it is not."""
    said = [say(language, "links.restored")]
    if filled.refused:
        names = say(language, "links.and").join(say(language, key) for key in filled.refused)
        said = [say(language, "links.left_out", names=names)]
    return say(language, "links.join").join([*said, model] if model else said)


def wire_links(models: Models, playground: PlaygroundTab, compare: CompareTab, tabs: Any) -> None:
    """Let an address fill the page: when it opens, and when another link is put in its place."""
    arriving = gr.HTML(
        "", html_template="<i hidden></i>", js_on_load=_ARRIVING % asset_url("page.js"),
        apply_default_css=False, elem_id="link-arriving",
    )  # fmt: skip
    notes = {"playground": playground.note, "compare": compare.note}
    fields = {"playground": playground.fields(), "compare": compare.fields()}

    def arrive(now: Any, event: gr.EventData) -> dict[Any, Any]:
        data = event._data if isinstance(event._data, dict) else {}
        language = read_tab(data).language
        try:
            asked = read_link(data.get("link"))
        except BrokenLink as error:
            return dict.fromkeys(notes.values(), say(language, str(error)))
        filled = fill_playground(asked) if asked.place == "playground" else fill_compare(asked)
        picked, told = about_model(asked, models, now if isinstance(now, str) else None, language)
        return {
            **dict(zip(fields[asked.place], _updates(asked.place, filled.values), strict=True)),
            **dict.fromkeys(notes.values(), ""),
            notes[asked.place]: sentence(filled, told, language),
            **({playground.model: picked} if picked else {}),
            tabs: gr.update(selected=asked.place),
        }

    arriving.arrive(
        arrive, playground.model,
        [playground.model, tabs, *notes.values(), *fields["playground"], *fields["compare"]],
        queue=False, **PRIVATE,
    )  # fmt: skip


def _updates(place: str, values: Iterable[Any]) -> list[Any]:
    """Values as the components take them: Compare's rows are shown or hidden by their own updates."""
    given = list(values)
    if place == "compare":
        first, shown, rest = given[:4], given[4], given[5:]
        return [*first, shown, *(gr.update(visible=on) for on in shown), *rest]
    return given


def _mode(asked: Asked) -> tuple[str, list[str]]:
    mode = asked.get("mode") or MODES[0]
    return (mode, []) if mode in MODES else (MODES[0], ["playground.mode"])


def _title(name: str) -> str:
    """The last part of a name that may be a path, with what would turn the sentence about as escapes."""
    return one_line(name.replace("\\", "/").rstrip("/").rpartition("/")[2])
