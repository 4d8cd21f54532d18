"""Compare in a real browser: the measures, the reference, the same logits under other settings."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.core.compare import first_divergence
from playground.core.metrics import measures
from playground.core.run import Run, fold
from playground.core.trace import load_trace
from tests.browser.stage_events import packet, send
from tests.browser.test_stage import lanes_run

pytestmark = pytest.mark.browser

TRACES = Path(__file__).parents[2] / "assets" / "traces"


def table_of(page: Any) -> dict[int, dict[str, str]]:
    """The values behind the table's cells, by lane and key."""
    rows = page.locator(".ft-measure-table tbody tr").evaluate_all(
        "rows => rows.map((r) => [Number(r.dataset.lane),"
        " Object.fromEntries([...r.cells].slice(1).map((c) => [c.dataset.key, c.dataset.value]))])"
    )
    return dict(rows)


def same(shown: str, expected: object) -> bool:
    if isinstance(expected, int | float):
        return float(shown) == pytest.approx(expected)
    return shown == (expected or "")


def test_the_table_holds_what_python_computes_sorts_and_is_saved(stage: Any) -> None:
    (recorded,) = load_trace(TRACES / "compare.jsonl").records
    assert isinstance(recorded, Run)
    page = stage("quiet&layout=compare")
    send(page, packet(recorded.events, run=recorded.id, label="recorded"))
    shown = table_of(page)
    for lane in recorded.lanes:
        found = measures(recorded, lane)
        for key in found.__slots__:
            assert same(shown[lane.index][key], getattr(found, key)), (lane.index, key)
        parted = first_divergence(recorded.lanes[0].token_ids, lane.token_ids)
        assert shown[lane.index]["diverges_at"] == ("" if parted is None else str(parted))
    sort = page.get_by_role("button", name="Sort by perplexity")
    for sign in (1, -1):
        sort.click()
        order = page.locator("tbody td[data-key=perplexity]").evaluate_all(
            "c => c.map((x) => +x.dataset.value)"
        )
        assert order == sorted(order, key=lambda value: sign * value)
    page.get_by_role("button", name="perplexity", exact=True).click()
    assert page.get_by_role("note").filter(has_text="2 to the mean surprisal").is_visible()
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save as CSV").click()
    lines = Path(saving.value.path()).read_text("utf-8").splitlines()
    assert len(lines) == 1 + len(recorded.lanes) and lines[0].startswith("run,settings,diverges_at,")


def test_another_reference_and_the_same_logits_before_the_fork(stage: Any) -> None:
    page = stage("quiet&layout=compare")
    send(page, packet(lanes_run()))
    assert fold(lanes_run()).lanes[1].token_ids[2] != fold(lanes_run()).lanes[0].token_ids[2]
    page.get_by_label("Reference").select_option("1")
    assert page.get_by_role("region", name="Balanced").locator(".ft-shared, .ft-parting").count() == 0
    first = page.get_by_role("region", name="Run A", exact=True)
    assert first.locator(".ft-parting").inner_text() == " is"
    fork = page.get_by_role("region", name="At the fork")
    assert "Run A leaves Balanced at token 3" in fork.inner_text()
    first.locator(".ft-token").nth(1).click()
    assert "2 runs still stand on the same logits" in fork.inner_text()
    assert "has left already" in fork.inner_text() and "draw 0.310" in fork.inner_text()
    fork.get_by_role("button", name="earlier token").click()
    assert "3 runs stand on the same logits, and they part here" in fork.inner_text()
    assert fork.get_by_role("button", name="earlier token").is_disabled()
    fork.get_by_role("button", name="later token").click()
    first.locator(".ft-token").nth(2).press("Enter")
    assert "they part here: Run A took" in fork.inner_text()


GROWING = """() => {
  const counts = [];
  window.grown = new Promise((done) => {
    const look = () => {
      const cards = [...document.querySelectorAll('#stage-compare .ft-lane')];
      const ours = sessionStorage.getItem('first-token.run.compare') && cards.length === 4;
      if (ours) counts.push(cards.map((card) => card.querySelectorAll('.ft-token').length));
      const ended = (card) => card.querySelector('.ft-finish').dataset.state !== 'running';
      if (ours && cards.every(ended)) return done(counts);
      setTimeout(look, 30);
    };
    look();
  });
}"""
"""Counts tokens from before the press of the button on, so that a quick run is not missed."""


@pytest.mark.model
def test_four_lanes_grow_together_and_are_copied_kept_and_called(on_model: Any, open_page: Any) -> None:
    """One page: equal settings give equal lanes, the fork stands where the ids of the HTTP answer differ."""
    page = open_page(on_model.url)
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Compare").click()
    specs = ["greedy", "temperature=0.9,top_p=0.95,seed=5"]
    for letter, spec in zip("ABCD", specs + specs, strict=True):
        page.get_by_role("textbox", name=f"Settings of run {letter}").fill(spec)
    page.get_by_role("spinbutton", name="At most").last.fill("20")
    page.evaluate(GROWING)
    page.get_by_role("button", name="Generate all").click()
    counts = page.evaluate("grown")
    between = {tuple(count) for count in counts if min(count) > 0 and max(count) < 20}
    assert len(between) > 2 and all(len(set(count)) == 1 for count in between)

    page.get_by_role("button", name="Copy as curl").click()
    page.locator("#copy-text textarea").wait_for()
    called = subprocess.run(
        ["bash", "-c", page.locator("#copy-text textarea").input_value()],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    (answer,) = json.loads(called.stdout.split("data: ", 1)[1])
    first, second, third, fourth = (lane["token_ids"] for lane in answer["lanes"])
    assert first == third != second == fourth
    fork = str(answer["lanes"][1]["diverges_at"])
    shown = table_of(page)
    assert [shown[lane]["diverges_at"] for lane in range(4)] == ["", fork, "", fork]
    for lane, there in enumerate(answer["lanes"]):
        for key in (
            "perplexity",
            "mean_entropy_bits",
            "mean_kept_mass",
            "distinct_2",
            "tokens",
            "kv_used_bytes",
        ):
            assert float(shown[lane][key]) == pytest.approx(there["measures"][key], rel=1e-4), key
        parting = page.locator("#stage-compare .ft-lane").nth(lane).locator(".ft-parting")
        assert parting.evaluate_all("chips => chips.map((c) => c.dataset.i)") == ([fork] if lane % 2 else [])

    page.get_by_role("button", name="Different seeds").click()
    page.get_by_role("button", name="Keep these settings").click()
    page.locator("#saved-lanes").wait_for()
    page.get_by_role("button", name="Same seed").click()
    settings = page.get_by_role("textbox", name="Settings of run D")
    page.wait_for_function(
        "document.querySelectorAll('#compare .spec :is(input, textarea)')[3].value.endsWith('seed=5')"
    )
    page.locator("#saved-lanes input").click()
    page.get_by_role("option").first.click()
    page.wait_for_function(
        "document.querySelectorAll('#compare .spec :is(input, textarea)')[3].value.endsWith('seed=8')"
    )
    assert settings.input_value() == "temperature=0.9,top_p=0.95,seed=8"

    page.get_by_role("button", name=re.compile("^Open .+ in the Playground$")).nth(1).press("Enter")
    playground = page.get_by_role("tab", name="Playground")
    expect(playground).to_have_attribute("aria-selected", "true", timeout=30_000)
    stage = page.locator("#stage-run")
    chips = stage.locator(".ft-answer .ft-token[data-i]")
    expect(chips).to_have_count(len(second), timeout=30_000)
    assert chips.evaluate_all("(all) => all.map((one) => Number(one.dataset.id))") == second
    assert page.get_by_role("textbox", name="Seed").input_value() == "5"
    stage.get_by_role("region", name="Candidates").get_by_role("button", name="other settings").press("Enter")
    expect(stage.get_by_role("group", name="other settings")).to_contain_text("As it was", timeout=30_000)
    page.get_by_role("tab", name="Compare").click()
    expect(page.locator("#stage-compare .ft-lane")).to_have_count(4)
    assert [shown[lane]["diverges_at"] for lane in range(4)] == ["", fork, "", fork]
