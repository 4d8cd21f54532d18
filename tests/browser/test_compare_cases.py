"""The cases of people who use tools like this, on Compare: probabilities, penalties, stopping, leaving."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from playground.backends.hosted import Runs
from tests.ui.conftest import Echo

pytestmark = pytest.mark.browser

COUNTERS = "window.firstTokenCompare?.counters"


def compare_page(open_page: Any, url: str, prompt: str, specs: list[str], count: int) -> Any:
    page = open_page(url)
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Compare").click()
    page.locator("#compare-prompt textarea").fill(prompt)
    page.locator("#compare-mode").get_by_label("Raw").check()
    for letter, spec in zip("ABCD", specs, strict=True):
        page.get_by_role("textbox", name=f"Settings of run {letter}").fill(spec)
    page.locator("#compare-count input").fill(str(count))
    return page


def begin(page: Any, button: str = "Generate all") -> str:
    before = page.evaluate("sessionStorage.getItem('first-token.run.compare')")
    page.get_by_role("button", name=button).click()
    page.wait_for_function("(old) => sessionStorage.getItem('first-token.run.compare') !== old", arg=before)
    return str(page.evaluate("sessionStorage.getItem('first-token.run.compare')"))


def ended(page: Any) -> None:
    page.wait_for_function(
        "() => { const all = [...document.querySelectorAll('#stage-compare .ft-finish')];"
        f" return {COUNTERS}.steps > 0 && all.length && all.every((one) => one.dataset.state !== 'running'); }}",
        timeout=60_000,
    )


def columns(page: Any) -> dict[int, dict[int, dict[str, Any]]]:
    """What the fork card shows: by lane, by candidate."""
    found: dict[int, dict[int, dict[str, Any]]] = {}
    for cell in page.locator("#stage-compare .ft-fork-cell").evaluate_all(
        "all => all.map((c) => ({...c.dataset}))"
    ):
        found.setdefault(int(cell["lane"]), {})[int(cell["id"])] = cell
    return found


@pytest.mark.model
def test_settings_on_the_same_logits_then_stop_then_many_draws(on_model: Any, open_page: Any) -> None:
    """Cases 8, 9 and 16 at the first token, where all lanes stand on the same logits; case 20; draws."""
    specs = [
        "greedy", "temperature=0.7,top_p=1,top_k=3,seed=5", "temperature=0.5,top_p=0.9,seed=5",
        "temperature=1,top_p=1,repetition_penalty=1.5,seed=5",
    ]  # fmt: skip
    page = compare_page(open_page, on_model.url, "The dog chased the cat. The dog chased the", specs, 4)
    begin(page)
    ended(page)
    page.locator("#stage-compare .ft-lane").first.locator(".ft-token").first.click()
    greedy, top_k, both, penalised = (columns(page)[lane] for lane in range(4))
    raw = [{id: float(cell["raw"]) for id, cell in column.items()} for column in (greedy, top_k, both)]
    assert raw[0] == raw[1] == raw[2]  # the model's column does not move
    after = {id: float(cell["processed"]) for id, cell in greedy.items()}
    assert sorted(after.values())[-2:] == [0, 1]
    kept = [float(cell["processed"]) for cell in top_k.values() if not cell["removed"]]
    assert len(kept) == 3 and sum(kept) == pytest.approx(1, abs=1e-6)
    assert {cell["processed"] for cell in top_k.values() if cell["removed"]} == {"0"}
    assert any(float(cell["processed"]) > float(cell["raw"]) for cell in both.values())
    fork = page.get_by_role("region", name="At the fork")
    assert "thick bar: after settings, thin bar: model" in fork.inner_text()
    marked = [cell for cell in penalised.values() if cell.get("penalised")]
    assert marked and not any(cell.get("penalised") for cell in greedy.values())
    assert all(float(cell["processed"]) < float(cell["raw"]) for cell in marked if float(cell["raw"]) > 0.05)
    assert "penalised" in fork.inner_text() and "penalty 1.5" in page.locator("#stage-compare").inner_text()

    page.locator("#compare-count input").fill("1000")
    begin(page)
    page.wait_for_function(f"{COUNTERS}.steps >= 20")
    page.get_by_role("button", name="Stop").last.click()
    ended(page)
    states = page.locator("#stage-compare .ft-finish").evaluate_all("all => all.map((c) => c.dataset.state)")
    assert "cancelled" in states and set(states) <= {"cancelled", "stop_token"}
    assert page.evaluate(f"{COUNTERS}.steps") < 1000  # the lanes have what they had, and the table is full
    assert page.locator("#stage-compare td[data-key=perplexity]").count() == 4

    page.locator("#compare-count input").fill("6")
    page.locator("#draws-count input").click()
    page.get_by_role("option", name="8", exact=True).click()
    begin(page, "Draw many times")
    table = page.get_by_role("region", name="Measures")
    table.locator("tbody tr").nth(7).wait_for()
    counts = page.locator("#stage-compare .ft-tree-row[aria-level='1']").get_attribute("data-count")
    assert counts == "8" and page.locator("#stage-compare .ft-lanes").is_hidden()
    assert page.evaluate(f"{COUNTERS}.gaps") == 0


def test_a_closed_page_ends_the_forwards_of_all_lanes(
    open_page: Any,
    serving: Any,
    recorded_folder: Any,
    reload: Callable[[Any], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Case 20; and a reload finds the run, and its settings in the fields."""
    monkeypatch.setenv("GRADIO_HEARTBEAT_INTERVAL", "0.2")
    backend, runs = Echo(pause_seconds=0.05), Runs(abandon_seconds=600)
    served = serving(lambda name, report: backend, ("tests/made",), recorded_folder, runs=runs)
    specs = ["greedy", "temperature=0.9,seed=3", "greedy", "top_k=4,seed=8"]
    page = compare_page(open_page, served.url, "many words " * 60, specs, 600)
    run = begin(page)
    page.wait_for_function(f"{COUNTERS}.steps >= 20")
    reload(page)
    page.get_by_role("tab", name="Compare").click()
    page.wait_for_function(f"{COUNTERS}.steps >= 40")
    assert page.evaluate("sessionStorage.getItem('first-token.run.compare')") == run
    assert (
        page.get_by_role("textbox", name="Settings of run D").input_value()
        == "temperature=0.7,top_k=4,top_p=0.9,seed=8"
    )
    assert page.locator("#compare-count input").input_value() == "600"
    page.close()
    (hosted,) = runs.of(*{one.session for one in runs._runs.values()})
    deadline = time.monotonic() + 20
    while hosted._readers and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not hosted._readers
    made = backend.forwards
    time.sleep(0.3)
    assert backend.forwards <= made + 1 and not hosted.done
    hosted.stop()


def test_a_recorded_comparison_fills_the_lanes(replaying: Any, open_page: Any) -> None:
    page = open_page(replaying.url)
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Traces").click()
    page.locator("#shelf").get_by_role("button", name="Open").nth(1).click()
    page.wait_for_function("document.querySelector('#compare-prompt textarea')?.value === 'What is gravity?'")
    for letter, seed in zip("ABC", (7, 8, 9), strict=True):
        field = page.get_by_role("textbox", name=f"Settings of run {letter}")
        assert field.input_value() == f"temperature=0.7,top_p=0.9,seed={seed}"
    assert page.get_by_role("textbox", name="Settings of run D").is_hidden()
    assert page.locator("#compare-count input").input_value() == "64"
