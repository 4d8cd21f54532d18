"""Traces in a browser: exported, imported by another server, opened from a disk with no server at all."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.backends.replay import ReplayBackend
from playground.core.race import Race
from playground.core.record import Record
from playground.core.run import Run, fold
from playground.core.trace import dump_trace, dumps_trace, load_trace
from playground.settings import assets_dir
from playground.views.offline import offline_page
from playground.views.words import sections
from tests.browser.conftest import made_run

pytestmark = pytest.mark.browser

TRACES = assets_dir() / "traces"
NASTY = "</script><img src=x onerror='window.broken=1'><script>window.broken=1</script>"

STATE = """() => ({
  tokens: [...document.querySelectorAll('#stage-run .ft-answer .ft-token, #of-stage .ft-answer .ft-token')]
    .map((one) => [one.getAttribute('aria-label'), one.getAttribute('aria-current'), one.dataset.id]),
  rows: [...document.querySelectorAll('.ft-rows .ft-row[aria-label]')].map((one) => one.getAttribute('aria-label')),
  text: [...document.querySelectorAll('.ft-headline, .ft-card-candidates .ft-why, .ft-card-memory, .ft-settings')]
    .map((one) => one.textContent),
})"""


def wait(page: Any, condition: str, seconds: float = 20) -> None:
    """`page.wait_for_function` evaluates a string in the page, which an exported page's policy forbids."""
    until = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < until, condition
        page.wait_for_timeout(15)


@pytest.fixture
def open_file(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """`open_file(records)`: their page opened from a disk; nothing but the file itself may be asked for."""
    contexts, complaints, asked = [], [], []

    def open_file(records: list[Record], name: str = "", language: str = "en", **options: Any) -> Any:
        file = tmp_path / "offline.html"
        file.write_text(offline_page(records, language, name), encoding="utf-8")
        context = browser.new_context(**({"viewport": {"width": 1440, "height": 1000}} | options))
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        wait(page, "firstTokenStage.counters.painted > 0 && firstTokenStage.counters.backlog === 0")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_a_file_opened_with_no_server_shows_the_run_and_plays_it(
    open_file: Callable[..., Any], tmp_path: Path
) -> None:
    (run,) = load_trace(TRACES / "playground.jsonl").runs
    steps = run.lanes[0].steps
    page = open_file([run], "playground", color_scheme="dark")
    state = page.evaluate(STATE)
    assert [int(id) for _, _, id in state["tokens"]] == [step.token.id for step in steps]
    assert sum(current is not None for _, current, _ in state["tokens"]) == 1
    page.locator(".ft-answer .ft-token").nth(3).click()
    chosen = [row for row in page.evaluate(STATE)["rows"] if "chosen" in row]
    assert len(chosen) == 1
    assert chosen[0].startswith("␣" + steps[3].token.text.strip()) or steps[3].token.text.strip() in chosen[0]
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("heading", name="Token 5 of the answer")).to_be_visible()

    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.get_by_role("button", name="Dark mode").click()
    assert page.evaluate("document.querySelector('#of-stage').dataset.theme") == "light"

    page.get_by_label("Pace").select_option("5")
    page.get_by_role("button", name="Play").click()
    wait(page, "firstTokenStage.counters.steps > 0 && firstTokenStage.counters.steps < 30")
    page.get_by_role("button", name="Pause").click()
    at = page.evaluate("firstTokenPage.player.steps")
    wait(page, f"firstTokenStage.counters.steps === {at}")
    page.wait_for_timeout(500)
    assert page.evaluate("firstTokenStage.counters.steps") == at < len(steps)
    page.get_by_label("Pace").select_option("100")
    page.get_by_role("button", name="Play").click()
    wait(page, f"firstTokenStage.counters.steps === {len(steps)}")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert page.evaluate(STATE)["tokens"][-1][2] == str(steps[-1].token.id)

    (kept,) = load_trace(saved(page, "Save the trace", tmp_path)).records
    assert kept == run

    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(sections("zh")["traces"]["demo_playground"])
    expect(page.get_by_role("button", name="播放")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "zh-CN"


def test_a_file_holds_comparisons_and_races_too(open_file: Callable[..., Any], tmp_path: Path) -> None:
    (compared,), (race,) = (load_trace(TRACES / f"{name}.jsonl").records for name in ("compare", "race"))
    assert isinstance(compared, Run)
    assert isinstance(race, Race)
    page = open_file([compared, race], viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    lanes = page.locator(".ft-lane")
    for index, lane in enumerate(compared.lanes):
        expect(lanes.nth(index).locator(".ft-token")).to_have_count(len(lane.steps))
    page.get_by_role("combobox", name="Run").select_option("1")
    expect(page.locator(".ft-race-side")).to_have_count(2)
    for side, run in zip((0, 1), (race.cached, race.uncached), strict=True):
        assert page.locator(".ft-race-text").nth(side).inner_text().startswith(run.lanes[0].text[:30])
    expect(page.locator("[data-equal]")).to_have_attribute("data-equal", str(len(race.ticks)))
    (kept,) = load_trace(saved(page, "Save the trace", tmp_path)).records
    assert kept == race


def test_what_a_model_wrote_is_text_in_a_file(open_file: Callable[..., Any]) -> None:
    """Case 7: also in an exported page, and right-to-left prompts keep their direction."""
    started, *events = made_run().events
    named = replace(
        started, model=replace(started.model, name=NASTY), request=replace(started.request, prompt=NASTY)
    )
    steps = [
        replace(e, text=NASTY, token=replace(e.token, text=NASTY)) if hasattr(e, "token") else e
        for e in events
    ]
    page = open_file([fold([named, *steps])])
    assert page.evaluate("window.broken") is None
    expect(page.get_by_role("heading", level=1)).to_contain_text("</script>")
    assert NASTY in page.locator(".ft-answer").inner_text()


def finish_run(page: Any) -> None:
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function("sessionStorage.getItem('first-token.run.run')")
    page.wait_for_function(
        "firstTokenStage.counters.steps === 80 && firstTokenStage.counters.backlog === 0", timeout=20_000
    )


def traces(page: Any) -> Any:
    page.get_by_role("tab", name="Traces").click()
    page.locator("#shelf .tr-cards").first.wait_for()
    return page.locator("#shelf")


def saved(page: Any, name: str, tmp_path: Path) -> Path:
    with page.expect_download() as download:
        page.get_by_role("button", name=name).first.click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def at_once(
    serving: Any, recorded_folder: Path, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Another server, whose model answers at once, with a recorded race, and which writes every run into a folder."""
    recorded = tmp_path_factory.mktemp("recorded")
    for file in (*recorded_folder.glob("*.jsonl"), TRACES / "race.jsonl"):
        shutil.copy(file, recorded)

    def load(name: str, report: Any) -> Any:
        return ReplayBackend(made_run(80), None)

    return serving(load, ("tests/made",), recorded, saved=folder)


def test_exported_and_imported_by_another_server_the_page_is_the_same(
    open_page: Any, at_once: Any, replaying: Any, folder: Path, open_file: Callable[..., Any], tmp_path: Path
) -> None:
    page = open_page(at_once.url)
    finish_run(page)
    page.locator(".ft-answer .ft-token").nth(40).click()
    before = page.evaluate(STATE)
    shelf = traces(page)
    expect(shelf.get_by_role("heading", level=2)).to_have_text(
        ["Yours", "Recorded examples", "Saved in the folder"]
    )
    assert (
        len(shelf.locator(".tr-group").nth(2).get_by_role("listitem").all())
        == len(list(folder.glob("*.jsonl")))
        == 1
    )
    trace = saved(page, "Save as JSONL: What is gravity?", tmp_path)
    table = saved(page, "Save as CSV: What is gravity?", tmp_path)
    alone = saved(page, "Save as HTML: What is gravity?", tmp_path)
    (run,) = load_trace(trace).runs
    assert run.lanes[0].token_ids == made_run(80).lanes[0].token_ids
    assert table.read_text().count("\n") == 81
    assert alone.read_text() == offline_page([run])
    offline = open_file([run])
    offline.locator(".ft-answer .ft-token").nth(40).click()
    assert offline.evaluate(STATE)["tokens"] == before["tokens"]
    assert offline.evaluate(STATE)["rows"] == before["rows"]

    other = open_page(replaying.url)
    traces(other).locator("input[type=file]").set_input_files(trace)
    other.wait_for_function("firstTokenStage.counters.steps === 80 && firstTokenStage.counters.backlog === 0")
    expect(other.get_by_role("tab", name="Playground")).to_have_attribute("aria-selected", "true")
    expect(other.locator("#stage-run .ft-label")).to_have_text("Recorded run of made")
    other.locator(".ft-answer .ft-token").nth(40).click()
    assert other.evaluate(STATE) == before
    other.reload()
    other.wait_for_function("window.firstTokenStage && firstTokenStage.counters.steps === 80")
    expect(other.locator("#stage-run .ft-label")).to_have_text("Recorded run of made")


def test_a_comparison_is_opened_in_its_own_tab_and_an_older_run_again(open_page: Any, at_once: Any) -> None:
    page = open_page(at_once.url)
    finish_run(page)
    first = page.evaluate("sessionStorage.getItem('first-token.run.run')")
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function("old => sessionStorage.getItem('first-token.run.run') !== old", arg=first)
    shelf = traces(page)
    mine = shelf.locator(".tr-group").first.get_by_role("button", name="Open: What is gravity?")
    expect(mine).to_have_count(2)
    shelf.locator(".tr-group").nth(1).get_by_role("button", name="Open: What is gravity?").nth(1).click()
    expect(page.locator("#stage-compare .ft-lane")).to_have_count(3)
    expect(page.get_by_role("tab", name="Compare")).to_have_attribute("aria-selected", "true")
    traces(page).locator(".tr-group").first.get_by_role("button", name="Open: What is gravity?").nth(
        1
    ).click()
    page.wait_for_function("run => sessionStorage.getItem('first-token.run.run') === run", arg=first)
    expect(page.get_by_role("tab", name="Playground")).to_have_attribute("aria-selected", "true")
    page.wait_for_function("firstTokenStage.counters.steps === 80")


def test_a_race_is_opened_where_races_are_shown(open_page: Any, at_once: Any) -> None:
    page = open_page(at_once.url)
    traces(page).get_by_role("button", name="Open: With the KV cache and without").click()
    expect(page.get_by_role("tab", name="Race", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#stage-race .ft-race-side")).to_have_count(2)
    expect(page.locator("#stage-race .ft-label")).to_have_text("Recorded run of SmolLM2-135M-Instruct")
    (race,) = load_trace(TRACES / "race.jsonl").records
    assert isinstance(race, Race)
    expect(page.locator("#stage-race [data-equal]")).to_have_attribute("data-equal", str(len(race.ticks)))


def test_files_that_are_no_traces_get_a_sentence_and_harm_nothing(
    open_page: Any, at_once: Any, tmp_path: Path
) -> None:
    """Broken, cut short, from the future, of 100 MB, hostile: the page goes on as it was."""
    page = open_page(at_once.url)
    finish_run(page)
    before = page.evaluate(STATE)
    good = dumps_trace([made_run(8)])
    lines = good.split("\n")
    shuffled = "\n".join([*lines[:3], lines[5], lines[4], *lines[6:]])
    files: dict[str, tuple[bytes, str]] = {
        "future": (lines[0].replace('"version":1', '"version":7').encode(), "version newer than the 1"),
        "broken": (b'{"format', "does not begin like a First Token trace"),
        "binary": (b"\x89PNG\xff\xfe", "binary.jsonl is not UTF-8 text"),
        "negative": (good.replace("[100,", "[-100,").encode(), "must be a number from 0"),
        "shuffled": (shuffled.encode(), "stands where step 0 belongs"),
        "nan": (good.replace('"logsumexp":20.0', '"logsumexp":NaN').encode(), "logsumexp must be a number"),
    }
    shelf = traces(page)
    for name, (content, sentence) in files.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(content)
        shelf.locator("input[type=file]").set_input_files(path)
        expect(shelf.get_by_role("alert")).to_contain_text(sentence)
    with (tmp_path / "huge.jsonl").open("wb") as huge:
        huge.truncate(100 * 2**20)
    shelf.locator("input[type=file]").set_input_files(tmp_path / "huge.jsonl")
    expect(shelf.get_by_role("alert")).to_have_text("huge.jsonl is larger than 16 MiB; nothing was loaded.")
    page.get_by_role("tab", name="Playground").click()
    assert page.evaluate(STATE) == before

    hostile = good.replace(json.dumps(" gravity"), json.dumps(" " + NASTY))
    (tmp_path / "hostile.jsonl").write_text(hostile)
    traces(page).locator("input[type=file]").set_input_files(tmp_path / "hostile.jsonl")
    page.wait_for_function("firstTokenStage.counters.steps === 8")
    assert page.evaluate("window.broken") is None
    assert NASTY in page.locator("#stage-run .ft-answer").inner_text()


@pytest.mark.alone
def test_five_thousand_imported_tokens_do_not_freeze_the_page(
    open_page: Any, at_once: Any, tmp_path: Path
) -> None:
    """Case 25."""
    dump_trace(made_run(5000), tmp_path / "long.jsonl")
    page = open_page(at_once.url)
    shelf = traces(page)
    page.evaluate("""() => {
      let last = performance.now();
      window.longest = 0;
      const beat = () => {
        const now = performance.now();
        window.longest = Math.max(window.longest, now - last);
        last = now;
        setTimeout(beat, 10);
      };
      beat();
    }""")
    shelf.locator("input[type=file]").set_input_files(tmp_path / "long.jsonl")
    page.wait_for_function(
        "firstTokenStage.counters.steps === 5000 && firstTokenStage.counters.backlog === 0", timeout=60_000
    )
    assert page.evaluate("longest") < 2500
    page.locator("#stage-run .ft-answer .ft-token").nth(4321).click()
    expect(page.get_by_role("heading", name="Token 4,322 of the answer")).to_be_visible()
