"""The page in a browser, by role and name: on a replay first, then on the real model."""

import json
import re
import threading
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.backends.replay import ReplayBackend
from playground.engine.progress import Progress
from tests.browser.conftest import RUN_STEPS, made_run

pytestmark = pytest.mark.browser

STEPS = "firstTokenStage.counters.steps"


def start(page: Any) -> None:
    page.get_by_role("button", name="Generate", exact=True).click()


def wait_steps(page: Any, at_least: int, timeout: float = 20_000) -> int:
    page.wait_for_function(f"{STEPS} >= {at_least}", timeout=timeout)
    return int(page.evaluate(STEPS))


def run_of(page: Any) -> str:
    return str(page.evaluate("sessionStorage.getItem('first-token.run.run')"))


def wait_new_run(page: Any, old: str | None) -> str:
    page.wait_for_function(
        "old => { const now = sessionStorage.getItem('first-token.run.run'); return now && now !== old }",
        arg=old,
    )
    return run_of(page)


def test_first_sight_is_a_recorded_run(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    assert wait_steps(page, 24) == 24
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('first-token.run.run')") is None


def test_twelve_visitors_see_the_recorded_run_while_the_model_loads(
    open_page: Any, serving: Any, recorded_folder: Any
) -> None:
    """Nobody's first sight waits for the model, or for the others who do; then all are answered."""
    loaded = threading.Event()

    def load(name: str, report: Any) -> Any:
        report(Progress("download", 2**20, 4 * 2**20))
        loaded.wait(120)
        return ReplayBackend(made_run(RUN_STEPS), None)

    served = serving(load, (), recorded_folder)
    pages = [open_page(served.url) for _ in range(12)]
    for page in pages:
        assert wait_steps(page, 24) == 24
        expect(page.get_by_role("status").filter(has_text="Downloading the model")).to_be_visible()
    loaded.set()
    for page in pages:
        page.wait_for_function("document.querySelector('#device-chip .chip').textContent.includes('fp32')")
        start(page)
        assert wait_steps(page, RUN_STEPS) == RUN_STEPS


def test_tokens_arrive_one_after_another(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    wait_steps(page, 24)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("What is gravity?")
    start(page)
    wait_new_run(page, None)
    seen = {wait_steps(page, n) for n in (1, 8, 16, 24, RUN_STEPS)}
    assert len(seen) >= 4, f"tokens came in lumps: {seen}"
    counters = page.evaluate("firstTokenStage.counters")
    assert counters["gaps"] == 0
    assert counters["events"] == RUN_STEPS + 3


def test_reload_in_mid_run_finds_it_and_goes_on(open_page: Any, replaying: Any, reload: Any) -> None:
    page = open_page(replaying.url)
    start(page)
    run = wait_new_run(page, None)
    before = wait_steps(page, 5)
    reload(page)
    after = wait_steps(page, before)
    assert after < RUN_STEPS, "the run had ended before the reload; nothing was shown by this"
    assert run_of(page) == run
    assert wait_steps(page, RUN_STEPS) == RUN_STEPS


def test_another_tab_cannot_have_the_run(open_page: Any, replaying: Any, reload: Any) -> None:
    page = open_page(replaying.url)
    start(page)
    run = wait_new_run(page, None)
    other = open_page(replaying.url)
    other.evaluate("run => sessionStorage.setItem('first-token.run.run', run)", run)
    reload(other)
    assert wait_steps(other, 24) == 24, "the recorded run is shown instead"


def test_stop_then_generate_at_once_ten_times(open_page: Any, replaying: Any) -> None:
    """Case 20."""
    page = open_page(replaying.url)
    start(page)
    old = wait_new_run(page, None)
    for _ in range(10):
        page.evaluate("document.getElementById('stop').click(); document.getElementById('generate').click()")
        old = wait_new_run(page, old)
        wait_steps(page, 1)
    assert wait_steps(page, RUN_STEPS) == RUN_STEPS


def test_stop_keeps_what_there_is(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    start(page)
    wait_new_run(page, None)
    wait_steps(page, 4)
    page.get_by_role("button", name="Stop", exact=True).click()
    page.wait_for_timeout(500)
    stopped = page.evaluate(STEPS)
    page.wait_for_timeout(600)
    assert 4 <= page.evaluate(STEPS) == stopped < RUN_STEPS


def test_keys_generate_and_stop(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    box = page.get_by_role("textbox", name="Prompt", exact=True)
    box.fill("What is gravity?")
    box.press("Control+Enter")
    wait_new_run(page, None)
    wait_steps(page, 2)
    page.keyboard.press("Escape")
    page.wait_for_timeout(400)
    stopped = page.evaluate(STEPS)
    page.wait_for_timeout(500)
    assert page.evaluate(STEPS) == stopped < RUN_STEPS


def test_a_bad_setting_is_a_sentence_and_the_run_stays(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    wait_steps(page, 24)
    page.get_by_role("textbox", name="Seed").fill("many")
    start(page)
    expect(page.get_by_role("alert")).to_contain_text("must be a whole number")
    assert page.evaluate(STEPS) == 24


def test_a_model_that_cannot_be_loaded_is_taken_back(open_page: Any, replaying: Any) -> None:
    """Case 29: the running model stays."""
    page = open_page(replaying.url)
    wait_steps(page, 24)
    picker = page.get_by_role("combobox", name="Model")
    picker.click()
    page.get_by_role("option", name="broken").click()
    expect(page.get_by_role("alert")).to_contain_text("There is no model")
    expect(picker).to_have_value("made")


def test_a_slow_model_shows_its_progress(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    wait_steps(page, 24)
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="slow").click()
    expect(page.get_by_role("status").filter(has_text="Downloading the model")).to_be_visible()
    start(page)
    wait_new_run(page, None)
    assert wait_steps(page, RUN_STEPS) == RUN_STEPS


def test_chinese_and_back(open_page: Any, replaying: Any, reload: Any) -> None:
    page = open_page(replaying.url)
    page.get_by_role("button", name="EN / 中文").click()
    expect(page.get_by_role("button", name="生成", exact=True)).to_be_visible()
    expect(page.get_by_role("textbox", name="提示", exact=True)).to_have_value(re.compile("gravity"))
    expect(page.get_by_role("tab", name="对比")).to_be_visible()
    reload(page)
    expect(page.get_by_role("button", name="生成", exact=True)).to_be_visible()
    page.get_by_role("button", name="EN / 中文").click()
    expect(page.get_by_role("button", name="Generate", exact=True)).to_be_visible()


def test_a_chinese_browser_starts_in_chinese_and_is_offered_a_model(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url, locale="zh-CN")
    expect(page.get_by_role("button", name="生成", exact=True)).to_be_visible()
    offer = page.get_by_role("button", name="改用懂中文的小模型 slow-zh")
    expect(offer).to_be_visible()
    offer.click()
    expect(page.get_by_role("status").filter(has_text="正在下载模型")).to_be_visible()
    expect(page.get_by_role("combobox", name="模型")).to_have_value("slow-zh")
    page.get_by_role("button", name="EN / 中文").click()
    expect(offer).to_be_hidden()


def test_dark_mode_is_remembered(open_page: Any, replaying: Any, reload: Any) -> None:
    page = open_page(replaying.url, color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Dark mode").click()
    dark = page.evaluate(background)
    assert dark != light
    reload(page)
    assert page.evaluate(background) == dark


def test_reset_help_and_presets(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    temperature = page.get_by_role("spinbutton", name="number input for Temperature")
    page.get_by_role("button", name="Wild").click()
    expect(temperature).to_have_value("1.4")
    page.get_by_role("button", name="Reset Temperature").click(force=True)
    expect(temperature).to_have_value("0.7")
    page.get_by_role("button", name="Help on Temperature").focus()
    expect(page.get_by_role("tooltip").filter(has_text="softmax")).to_be_visible()
    temperature.fill("0")
    temperature.press("Tab")
    expect(page.get_by_text("Temperature 0 is greedy")).to_be_visible()
    page.get_by_role("button", name="4 tokens").click()
    expect(page.get_by_role("textbox", name="Prompt", exact=True)).to_have_value("What is gravity?")
    expect(page.get_by_role("radio", name="Raw")).to_be_checked()


def test_compare_takes_over_prompt_and_settings(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("Why is the sky blue?")
    page.get_by_role("button", name="Wild").click()
    expect(page.get_by_role("spinbutton", name="number input for Temperature")).to_have_value("1.4")
    page.get_by_role("button", name="Compare these settings").click()
    expect(page.get_by_role("textbox", name="Settings of run A")).to_have_value("temperature=1.4,top_p=1")
    prompt = page.locator("#compare-prompt").get_by_role("textbox", name="Prompt", exact=True)
    expect(prompt).to_have_value("Why is the sky blue?")
    page.wait_for_function("window.firstTokenCompare")
    page.get_by_role("button", name="Generate all").click()
    page.wait_for_function("sessionStorage.getItem('first-token.run.compare')")


def test_lanes_are_added_and_removed_between_two_and_four(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    page.get_by_role("tab", name="Compare").click()
    lanes = page.get_by_role("combobox", name=re.compile("^Run [A-D]$"))
    expect(lanes).to_have_count(4)
    for letter, left in zip("DCB", (3, 2, 2), strict=True):
        page.get_by_role("button", name=f"Remove run {letter}").click()
        expect(lanes).to_have_count(left)
        page.wait_for_timeout(100)
    page.get_by_role("button", name="Add a run").click()
    expect(lanes).to_have_count(3)


def test_tabs_keep_their_stage(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    start(page)
    wait_new_run(page, None)
    page.get_by_role("tab", name="Compare").click()
    page.wait_for_function("window.firstTokenCompare")
    page.get_by_role("tab", name="Playground").click()
    assert wait_steps(page, RUN_STEPS) == RUN_STEPS


@pytest.mark.alone
def test_a_fast_replay_arrives_within_a_second_of_its_end(
    open_page: Any, serving: Any, recorded_folder: Any
) -> None:
    """Case 21: 2,000 tokens at 200 a second, through the server."""
    served = serving(
        lambda name, report: ReplayBackend(made_run(2000), 200.0), ("tests/made",), recorded_folder
    )
    page = open_page(served.url)
    page.wait_for_function("document.querySelector('#device-chip .chip').textContent.includes('fp32')")
    began = page.evaluate("performance.now()")
    start(page)
    wait_new_run(page, None)
    wait_steps(page, 2000, timeout=30_000)
    page.wait_for_function("firstTokenStage.counters.backlog === 0")
    late = page.evaluate("performance.now()") - began - 2000 / 200 * 1000
    counters = page.evaluate("firstTokenStage.counters")
    assert late < 1000, f"the page was {late:.0f} ms behind"
    assert counters["gaps"] == 0
    assert counters["painted"] == 2000


def test_a_closed_page_costs_no_forward(open_page: Any, serving: Any, recorded_folder: Any) -> None:
    """Case 20: closing the tab stops the run."""
    from tests.ui.conftest import Echo

    backend = Echo(pause_seconds=0.05)
    served = serving(lambda name, report: backend, ("tests/made",), recorded_folder)
    page = open_page(served.url)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("word " * 200)
    page.get_by_role("spinbutton", name="At most").fill("900")
    start(page)
    wait_new_run(page, None)
    wait_steps(page, 5)
    page.close()
    time.sleep(1)
    left = backend.forwards
    time.sleep(1)
    assert backend.forwards == left < 100


def test_three_long_runs_leave_the_page_as_large_as_one(
    open_page: Any, serving: Any, recorded_folder: Any
) -> None:
    """Case 21."""
    served = serving(
        lambda name, report: ReplayBackend(made_run(2000), None), ("tests/made",), recorded_folder
    )
    page = open_page(served.url)
    nodes, old = [], None
    for _ in range(3):
        start(page)
        old = wait_new_run(page, old)
        wait_steps(page, 2000)
        page.wait_for_function("firstTokenStage.counters.backlog === 0")
        nodes.append(page.evaluate("document.getElementsByTagName('*').length"))
    assert nodes[2] <= nodes[0] + 50


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_is_wider_than_the_page(open_page: Any, replaying: Any, theme: str, width: int) -> None:
    page = open_page(replaying.url, color_scheme=theme, viewport={"width": width, "height": 844})
    wait_steps(page, 24)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.classList.contains('dark')") == (theme == "dark")


def test_the_markup_of_the_page_names_no_other_host(replaying: Any) -> None:
    import urllib.request

    with urllib.request.urlopen(replaying.url) as answer:
        html = answer.read().decode()
    fetched = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(https?:)?//[^\"]+", html)
    assert not fetched
    config = json.loads(re.search(r"window\.gradio_config = (\{.*?\});</script>", html, re.S).group(1))  # type: ignore[union-attr]
    assert config["analytics_enabled"] is False
    assert config["stylesheets"] == []


def kv_line(page: Any) -> str:
    return str(page.get_by_role("region", name="KV cache").inner_text())


def finish(page: Any, run: str, timeout: float = 90_000) -> Any:
    """Wait for the end of the run, and return what the server keeps of it, as the page got it."""
    page.wait_for_function("run => window.firstTokenRuns?.[run]?.done", arg=run, timeout=timeout)
    return page.evaluate("run => window.firstTokenRuns[run]", run)


LISTEN = """
window.firstTokenRuns = {};
window.addEventListener('first-token-packet', ({ detail }) => {
  if (!detail.run || detail.label === 'recorded') return;
  const run = window.firstTokenRuns[detail.run] ??= { steps: [], arrivals: [], prompt: 0, done: false };
  for (const event of detail.events ?? []) {
    if (event.event === 'started') run.prompt = event.prompt.length;
    if (event.event === 'stepped') { run.steps.push(event); run.arrivals.push(performance.now()); }
    if (event.event === 'finished' || event.event === 'failed') run.done = true;
  }
});
"""


@pytest.mark.model
def test_the_real_model_from_prompt_to_gauge(open_page: Any, on_model: Any, reload: Any) -> None:
    page = open_page(on_model.url)
    page.evaluate(LISTEN)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("What is gravity?")
    start(page)
    run = finish(page, wait_new_run(page, None))
    assert len(set(run["arrivals"])) > len(run["steps"]) / 4, "the tokens came in lumps"
    for step in run["steps"]:
        assert abs(
            sum(candidate[2] for candidate in step["candidates"] if candidate[3] is None) - 1
        ) < 1e-6 or (step["kept_count"] > len([c for c in step["candidates"] if c[3] is None]))
        assert step["kv_used_bytes"] == step["kv_tokens"] * 46_080
    last = run["steps"][-1]
    assert last["kv_tokens"] == run["prompt"] + len(run["steps"]) - 1
    assert "equal" in kv_line(page)


@pytest.mark.model
def test_the_kept_rows_shown_sum_to_one(open_page: Any, on_model: Any) -> None:
    page = open_page(on_model.url)
    page.get_by_role("button", name="Tour").click()
    page.keyboard.press("Escape")
    page.get_by_role("textbox", name="Prompt", exact=True).fill("What is gravity?")
    start(page)
    wait_new_run(page, None)
    wait_steps(page, 8, timeout=60_000)
    names = (
        page.get_by_role("region", name="Candidates")
        .get_by_role("listitem")
        .evaluate_all("rows => rows.map((row) => row.getAttribute('aria-label'))")
    )
    shares = [
        float(found[1]) for name in names if (found := re.search(r"after settings ([\d.]+) %", name or ""))
    ]
    assert abs(sum(shares) - 100) < 0.5, names


@pytest.mark.model
def test_the_real_run_survives_a_reload_and_restarts_at_once(
    open_page: Any, on_model: Any, reload: Any
) -> None:
    page = open_page(on_model.url)
    page.get_by_role("spinbutton", name="At most").fill("400")
    page.get_by_role("radio", name="Raw", exact=True).check(force=True)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("Once upon a time")
    page.get_by_role("button", name="Wild").click()
    start(page)
    run = wait_new_run(page, None)
    before = wait_steps(page, 5, timeout=60_000)
    reload(page)
    after = wait_steps(page, before, timeout=60_000)
    assert run_of(page) == run
    assert wait_steps(page, after + 3, timeout=60_000) > after, "it did not go on"
    old = run
    for _ in range(10):
        page.evaluate("document.getElementById('stop').click(); document.getElementById('generate').click()")
        old = wait_new_run(page, old)
        wait_steps(page, 1, timeout=60_000)
