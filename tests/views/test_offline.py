"""Exported pages: everything inside, nothing asked of anybody, and what a record says is text."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from playground.core.codec import decode
from playground.core.record import Record
from playground.core.run import Run, fold
from playground.core.trace import load_trace
from playground.settings import assets_dir
from playground.views.bundle import CannotBundle, bundled
from playground.views.entries import SHIPPED, entry, shipped
from playground.views.gallery import Exhibit, gallery_page
from playground.views.offline import offline_page
from playground.views.words import LANGUAGES, sections

NASTY = (
    '</script><script>window.broken=1</script><!--<img src=x onerror="window.broken=1">{0}{{x}}\u2028\ud83d'
)
RUN: Run = load_trace(assets_dir() / "traces" / "playground.jsonl").runs[0]


class Page(HTMLParser):
    """The tags of a page with their attributes, and what stands in each."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag
        self.texts.setdefault(tag, []).append("")

    def handle_data(self, data: str) -> None:
        if self._in:
            self.texts[self._in][-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.tags if name == tag]


def nasty(run: Run) -> Run:
    started, *events = run.events
    request = replace(started.request, prompt=NASTY)
    model = replace(started.model, name=NASTY, device_name=NASTY)
    steps = [
        replace(e, text=NASTY, token=replace(e.token, text=NASTY)) if hasattr(e, "token") else e
        for e in events
    ]
    return fold([replace(started, request=request, model=model), *steps])


def data_of(page: Page) -> Any:
    (data,) = [
        text
        for attributes, text in zip(page.attributes("script"), page.texts["script"], strict=True)
        if attributes.get("type") == "application/json"
    ]
    return json.loads(data)


def test_the_record_and_every_language_are_inside() -> None:
    data = data_of(Page(offline_page([RUN], "zh", "playground")))
    (record,) = data["records"]
    assert [decode(event) for event in record["packet"]["events"]] == RUN.events
    assert (record["layout"], data["language"], set(data["words"])) == ("run", "zh", set(LANGUAGES))
    assert record["says"]["zh"]["title"] == sections("zh")["traces"]["demo_playground"]
    assert (
        "SmolLM2-135M-Instruct, float32\u00a0· T 0.7, top-p 0.9, seed 5\u00a0· 43 tokens"
        in record["says"]["en"]["facts"]
    )


def test_what_a_record_says_cannot_become_markup() -> None:
    """Case 7: in an exported page too."""
    text = offline_page([nasty(RUN)])
    page, plain = Page(text), Page(offline_page([RUN]))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert data_of(page)["records"][0]["packet"]["events"][5]["token"][1] == NASTY
    assert "<!--" not in text.partition("<html")[2]


@pytest.mark.parametrize("made", ["page", "gallery"])
def test_the_policy_allows_what_is_inside_and_nothing_else(made: str) -> None:
    says = {one: entry(nasty(RUN), one) for one in LANGUAGES}
    text = offline_page([RUN]) if made == "page" else gallery_page([Exhibit("a.html", says)])
    page = Page(text)
    policy = next(
        a["content"] for a in page.attributes("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for kind, (inline,) in (("script-src", scripts), ("style-src", styles)):
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"{kind} 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    linked = [found for _, found in page.tags if {"src", "href"} & found.keys()]
    assert {found.get("href") for found in linked} <= {"data:,", "a.html"}
    assert not any(found.get("src") or "style" in found or "onload" in found for _, found in page.tags)
    assert "http://" not in re.sub(r"http://www\.w3\.org/2000/svg", "", text)


def test_every_script_of_the_stage_can_be_bundled() -> None:
    for script in ("offline.js", "stage.js", "gallery.js", "traces.js"):
        code = bundled(assets_dir() / script)
        assert not re.search(r"^\s*(import|export)\b", code, re.MULTILINE)


def test_a_name_may_be_taken_over_as_another(tmp_path: Path) -> None:
    (tmp_path / "e.js").write_text('import { d as other, f } from "./d.js";\nexport const e = other + f;\n')
    (tmp_path / "d.js").write_text("export const d = 1;\nexport const f = 2;\n")
    assert "const { d: other, f } = m0;" in bundled(tmp_path / "e.js")


def test_a_form_that_is_not_known_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.js").write_text('import * as b from "./b.js";\n')
    with pytest.raises(CannotBundle, match=r"a\.js"):
        bundled(tmp_path / "a.js")
    (tmp_path / "c.js").write_text('import { d } from "./d.js";\nexport const c = 1;\n')
    (tmp_path / "d.js").write_text('import { c } from "./c.js";\nexport const d = c;\n')
    with pytest.raises(CannotBundle, match="imports itself"):
        bundled(tmp_path / "c.js")


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_shipped_trace_has_a_title_and_a_lesson(name: str, language: str) -> None:
    record: Record = load_trace(assets_dir() / "traces" / f"{name}.jsonl").records[0]
    said = entry(record, language, name)
    assert said.title == sections(language)["traces"][f"demo_{name}"]
    assert said.lesson
    assert re.search(r"\d+ (tokens|个词元)\u00a0· [\d.]+\u00a0m?s$", said.facts)


def test_the_shipped_ones_come_in_their_order() -> None:
    assert tuple(path.stem for path in shipped(assets_dir() / "traces")) == SHIPPED


def test_a_long_prompt_is_cut_and_one_of_ids_alone_has_a_name() -> None:
    started, *events = RUN.events
    long = fold([replace(started, request=replace(started.request, prompt="word " * 400)), *events])
    assert len(entry(long, "en").title) == 160
    bare = fold([replace(started, request=replace(started.request, prompt="")), *events])
    assert entry(bare, "en").title == "A run without a prompt text"


def test_the_file_has_the_panels_and_their_look() -> None:
    page = offline_page([RUN])
    assert "class Waterfall" in page and ".ft-waterfall-row" in page and "class TextTrack" in page
    assert '"event":"promptread"' in page, "what was expected of the prompt travels with the run"
