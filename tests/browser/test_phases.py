"""Prefill and decode as shares of a run's time, and what decode waited for: on the stage, then on the page."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.ui.measures import Reach
from tests.browser.stage_events import finished, packet, prefilled, send, started, step, token, whole_run

pytestmark = pytest.mark.browser

COST = {
    "run": "r", "limit": "bandwidth", "share": 0.57, "read_bytes": 538_000_000, "floor_seconds": 0.0171,
    "step_seconds": 0.03, "bytes_per_second": 26e9, "flops_per_second": 120e9,
}  # fmt: skip


def shares(page: Any) -> str:
    return str(page.locator(".ft-share-line").inner_text())


def widths(page: Any) -> list[float]:
    found = page.locator(".ft-shares > i").evaluate_all(
        "all => all.map((i) => i.getBoundingClientRect().width)"
    )
    return [width / sum(found) for width in found]


def test_the_two_phases_make_a_hundred_per_cent(stage: Any) -> None:
    """Case 31: 100 ms of prefill, and 37 decode steps of 30 ms each."""
    page = stage()
    send(page, packet(whole_run([" a"] * 38)))
    assert shares(page) == "prefill 8 %, decode 92 % of 1.21 s"
    assert widths(page) == pytest.approx([0.1 / 1.21, 1.11 / 1.21], abs=0.01)


def test_a_share_below_one_per_cent_keeps_a_decimal(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 700)))
    page.wait_for_function("document.querySelector('.ft-share-line').textContent.includes('0.5 %')")
    assert "decode 99.5 %" in shares(page)


def test_while_the_prompt_is_read_there_are_no_shares(stage: Any) -> None:
    page = stage()
    send(page, packet([started(), prefilled(), step(0, token(" a"))]))
    assert shares(page) == ""
    send(page, packet([step(1, token(" a"))], first=3))
    assert shares(page) == "prefill 77 %, decode 23 % of 130 ms"


@pytest.mark.parametrize(
    ("limit", "said"),
    [("bandwidth", "decode waits for memory: each step reads 513 MiB, at 57 % of the 26.0 GB/s measured here"),
     ("compute", "decode waits for arithmetic, at 57 % of the 120 GFLOP/s measured here"),
     ("overhead", "decode waits for overhead: a step could take 17 ms here and took 30 ms")],
)  # fmt: skip
def test_the_verdict_stands_with_a_finished_run(stage: Any, limit: str, said: str) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 38)), {"run": "r", "cost": COST | {"limit": limit}})
    assert shares(page).endswith(said)
    assert "prefill 8 %" in shares(page)


def test_a_verdict_of_another_run_is_not_shown(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 38)), {"cost": COST | {"run": "other"}})
    assert shares(page) == "prefill 8 %, decode 92 % of 1.21 s"
    send(page, packet([started(run="s"), prefilled(run="s")], run="s"))
    assert shares(page) == ""


def test_nothing_moves_when_the_verdict_arrives(stage: Any) -> None:
    page = stage()
    place = "() => document.querySelector('.ft-answer').getBoundingClientRect().top"
    send(page, packet([started()]))
    before = page.evaluate(place)
    send(page, packet([*whole_run([" a"] * 38)[1:-1], finished(" a" * 38)], first=1))
    send(page, {"run": "r", "cost": COST})
    assert page.evaluate(place) == before


SHORT = Reach(
    (32, 48, 64, 96),
    (32, 64, 96),
    (1, 4),
    one_by_one_tokens=16,
    roofline_tokens=32,
    peak_tokens=64,
    repeats=1,
)
"""Experiments that take a second or two."""


@pytest.fixture(scope="module")
def measuring(serving: Any, default_model: Any) -> Iterator[Any]:
    """The page over the default model, its experiments short."""
    from playground.backends.local import LocalBackend

    with pytest.MonkeyPatch.context() as patched:
        for section in ("kv_phases", "kv_ceiling"):
            patched.setattr(f"playground.ui.{section}.Reach", lambda: SHORT)
        yield serving(lambda name, report: LocalBackend(default_model), default=default_model.facts.name)


@pytest.fixture
def kv(open_page: Any, measuring: Any) -> Callable[[str], Any]:
    """`kv("Prefill and decode")`: the page with that section of the tab KV cache open, the model there."""

    def open_section(name: str) -> Any:
        page = open_page(measuring.url)
        page.keyboard.press("Escape")
        page.wait_for_function("document.querySelector('#device-chip .chip')?.textContent.includes('fp32')")
        page.get_by_role("tab", name="KV cache").click()
        page.get_by_role("tab", name=name).click()
        return page

    return open_section


def measured(page: Any, button: str, figure: str) -> Any:
    """Press the button of an experiment and wait for its finding."""
    page.get_by_role("button", name=button, exact=True).click()
    finding = page.locator(f"#{figure} .finding")
    expect(finding).to_be_visible(timeout=60_000)
    return finding


@pytest.mark.model
def test_the_experiments_on_prefill_and_decode(kv: Any) -> None:
    """Cases 31 and 32: each is a finding, a figure with a table and files, and what it was measured on."""
    page = kv("Prefill and decode")
    expect(page.get_by_text("No run yet: generate on the Playground")).to_be_visible()
    expect(measured(page, "Measure prefill time", "figure-prefill")).to_contain_text("96")
    expect(measured(page, "Measure step time", "figure-steps")).to_contain_text("96")
    expect(measured(page, "Read the prompt one by one", "figure-one-by-one")).to_contain_text("16")
    peak = measured(page, "Measure peak memory", "figure-peak")
    expect(peak).to_contain_text("at its peak")
    expect(peak).to_contain_text("logits of every position is the classic hidden peak")
    page.locator("#figure-peak").get_by_text("Table", exact=True).click()
    weights = page.locator("#figure-peak").get_by_role("row", name="weights")
    expect(weights).to_contain_text(re.compile("513 MiB.*513 MiB"))
    card = page.locator("#experiment-prefill")
    expect(card.locator(".conditions")).to_contain_text("fp32")
    expect(card.locator(".conditions")).to_contain_text("left out")
    expect(card.get_by_role("link", name="CSV")).to_be_visible()
    expect(card.locator(".js-plotly-plot")).to_be_visible()
    expect(card.get_by_role("button", name="Stop")).to_be_hidden()
    page.get_by_role("button", name="EN / 中文").click()
    expect(card.locator(".conditions")).to_contain_text("测量条件")
    expect(card.get_by_role("button", name="测量预填充时间")).to_be_visible()


@pytest.mark.model
def test_the_typical_chat_can_be_stopped_and_shows_what_it_had(kv: Any) -> None:
    page = kv("Prefill and decode")
    card = page.locator("#latest-run")
    card.get_by_role("button", name="Run 100 + 500").click()
    expect(card.get_by_text("of 500 tokens written")).to_be_visible(timeout=30_000)
    card.get_by_role("button", name="Stop").click()
    expect(card.locator(".finding")).to_be_visible(timeout=10_000)
    expect(card.get_by_role("row", name="100 + 500")).to_be_visible()
    expect(card.get_by_role("button", name="Stop")).to_be_hidden()


@pytest.mark.model
def test_the_ceiling_and_the_verdict_of_a_run(kv: Any) -> None:
    page = kv("What decode waits for")
    expect(page.locator("#run-needs").get_by_text("No run yet")).to_be_visible()
    measured(page, "Measure this device", "figure-roofline")
    expect(measured(page, "Measure several runs", "figure-lanes")).to_contain_text("4")
    page.get_by_role("tab", name="Playground").click()
    page.get_by_role("spinbutton", name="At most").fill("8")
    page.get_by_role("button", name="Generate", exact=True).click()
    line = page.locator("#stage-run .ft-share-line")
    expect(line).to_contain_text("decode waits for", timeout=60_000)
    page.get_by_role("tab", name="KV cache").click()
    needs = page.get_by_role("region", name="Bytes, operations and time of each phase")
    expect(needs.get_by_role("row", name="weights read computed")).to_contain_text("513 MiB")
    expect(needs.get_by_role("row", name="waits for estimated")).to_contain_text(
        re.compile("memory|arithmetic|overhead")
    )


@pytest.mark.model
def test_the_preset_fills_prompt_and_length(open_page: Any, measuring: Any) -> None:
    page = open_page(measuring.url)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="100 + 500", exact=True).click()
    expect(page.get_by_role("spinbutton", name="At most")).to_have_value("500")
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value(
        re.compile("town by the sea")
    )
    page.get_by_role("button", name="Loop", exact=True).click()
    expect(page.get_by_role("spinbutton", name="At most")).to_have_value("500")
