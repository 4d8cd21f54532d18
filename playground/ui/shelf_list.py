"""The shelf as the page draws it: groups of cards with what can be done with each, and the files it saves.

All words are in the language of the tab. Knows no component.
"""

import re
from typing import Any

from playground.core.printable import one_line
from playground.core.units import bytes_text
from playground.ui.archive import Saved
from playground.ui.session import Tab
from playground.ui.shelf import BROUGHT_BYTES, Shelf, Shelved, records_of
from playground.ui.text import sections
from playground.views.entries import BETWEEN, TITLE_CHARACTERS, entry
from playground.views.files import WRITERS

KINDS = tuple(WRITERS)
ALL = "own"
"""The key of everything that the tab has made or brought."""


def listing(shelf: Shelf, tab: Tab) -> dict[str, Any]:
    """Everything on the shelf, and the words around it."""
    text = sections(tab.language)["traces"]
    own = shelf.own(tab)
    groups = [
        _group(text, "yours", [_card(one, tab.language) for one in own], text["none_yet"] if not own else ""),
        _group(text, "recorded", [_card(one, tab.language) for one in shelf.shipped]),
    ]
    if own:
        groups[0]["tools"] = [_tool(text, "jsonl", ALL, text["group_yours"], label=text["save_all"])]
    if shelf.archive is not None:
        saved = [_saved(one, tab.language) for one in shelf.archive.listed()]
        groups.append(_group(text, "saved", saved, text["none_saved"] if not saved else ""))
    names = ("pick", "hint", "reading", "working", "not_text", "save_as")
    most = BROUGHT_BYTES // 2**20
    words = {name: text[name] for name in names} | {
        "most": BROUGHT_BYTES, "too_large": text["too_large"].format(name="{name}", most=most)
    }  # fmt: skip
    words["hint"] = text["hint"].format(most=most)
    return {"words": words, "groups": groups}


def file_of(shelf: Shelf, tab: Tab, key: object, kind: str) -> dict[str, str]:
    """The text of a file of that kind, of one thing on the shelf or of all that is the tab's own."""
    if key == ALL:
        records, name, stem = records_of(shelf.own(tab)), "", "first-token"
    else:
        found = shelf.find(tab, key)
        records, name = [found.record], found.name
        stem = name or _stem(found)
    text = WRITERS[kind](records, tab.language, name)
    return {"name": f"{stem}.{kind}", "kind": kind, "text": text}


def _stem(found: Shelved) -> str:
    """A plain name for the file, from the words of the title."""
    words = re.findall(r"\w+", entry(found.record, "en").title.lower())
    return "-".join(words)[:48].strip("-") or "trace"


def _group(text: dict[str, str], name: str, rows: list[dict[str, Any]], note: str = "") -> dict[str, Any]:
    return {
        "title": text[f"group_{name}"], "note": note or text.get(f"note_{name}", ""), "rows": rows,
        "pill": text[f"pill_{name}"],
    }  # fmt: skip


def _card(one: Shelved, language: str) -> dict[str, Any]:
    text = sections(language)["traces"]
    said = entry(one.record, language, one.name)
    return {
        "title": said.title, "lesson": said.lesson, "facts": said.facts, "pill": text[f"pill_{one.origin}"],
        "tools": [_tool(text, act, one.key, said.title) for act in ("open", *KINDS)],
    }  # fmt: skip


def _saved(one: Saved, language: str) -> dict[str, Any]:
    text = sections(language)["traces"]
    key = f"saved:{one.name}"
    title = one_line(" ".join(one.prompt.split())[:TITLE_CHARACTERS]) or text["untitled"]
    return {
        "title": title, "lesson": "", "facts": f"{one_line(one.name[:80])}{BETWEEN}{bytes_text(one.bytes)}",
        "pill": text["pill_saved"],
        "tools": [_tool(text, act, key, title) for act in ("open", *KINDS)],
    }  # fmt: skip


def _tool(text: dict[str, str], act: str, key: str, title: str, label: str = "") -> dict[str, str]:
    name = text["name_open" if act == "open" else "name_file"].format(kind=act.upper(), title="{title}")
    return {
        "act": act, "key": key, "label": label or (text["open"] if act == "open" else act.upper()),
        "name": f"{label}, {name}" if label else name.replace("{title}", title[:80]),
    }  # fmt: skip
