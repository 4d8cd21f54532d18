"""The race in the tab KV cache, by role and name: a made one first, then the real model."""

import math
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.backends.protocol import BackendError
from playground.backends.replay import ReplayBackend
from playground.core.control import Control
from playground.core.decoding import GREEDY
from playground.core.events import Event, Stepped
from playground.core.race import WITH, WITHOUT, Item, Race, Ticked, follow, result, work
from playground.core.request import Request
from playground.core.run import cancellations
from playground.core.trace import dump_trace
from playground.engine.progress import CannotLoad
from playground.ui.kv_race import EXAMPLE
from tests.browser.conftest import made_run

pytestmark = pytest.mark.browser

PROMPT_TOKENS, STEPS = 4, 40
REFUSAL = (
    "This model answers differently with its KV cache off, by more than rounding explains; nothing was run: "
    "race another model."
)


class MadeRace(ReplayBackend):
    """A race that was never run, 50 steps a second: flat with the cache, rising without, parting at `parted`.

    The prompt “refuse” is refused as a model that needs its cache is, “slow” is ten times as slow.
    """

    def __init__(self, dtype: str = "float32", parted: int | None = None) -> None:
        super().__init__(made_run(STEPS), 25.0)
        self.dtype, self.parted = dtype, parted

    def race(self, request: Request, control: Control) -> Iterator[Item]:
        if request.prompt == "refuse":
            raise BackendError(REFUSAL)
        return self._items(request, control)

    def _items(self, request: Request, control: Control) -> Iterator[Item]:
        race = Race()
        for item in self._script(request, min(STEPS, request.lanes[0].max_new_tokens)):
            control.held_seconds()
            if isinstance(item, Stepped) and control.wait(0.2 if request.prompt == "slow" else 0.02):
                break
            follow(race, item)
            yield item
        for run in (race.cached, race.uncached):
            for event in cancellations(run, 1.0):
                follow(race, event)
                yield event
        yield result(race)

    def _script(self, request: Request, steps: int) -> Iterator[Item]:
        sides = [self._side(request, steps, ending) for ending in (WITH, WITHOUT)]
        for pair in zip_longest(*sides):
            yield from pair
            if isinstance(pair[0], Stepped):
                step = pair[0].step
                after = self.parted is not None and step > self.parted
                yield Ticked(
                    step, None if after else step != self.parted, None if after else 1e-5 * (step + 1)
                )

    def _side(self, request: Request, steps: int, ending: str) -> list[Event]:
        made = made_run(steps, run=request.run + ending).events
        return [self._event(event, request, ending == WITH) for event in made]

    def _event(self, event: Event, request: Request, cached: bool) -> Event:
        if hasattr(event, "request"):
            facts = replace(event.model, dtype=self.dtype)
            return replace(event, request=replace(event.request, lanes=request.lanes), model=facts)
        if not isinstance(event, Stepped) or cached:
            return event
        seconds = 0.03 + 0.001 * event.step
        token = event.token if event.step != self.parted else replace(event.token, id=1, text=" other")
        return replace(
            event, token=token, text=token.text, end_seconds=event.start_seconds + seconds,
            positions_computed=PROMPT_TOKENS + event.step, positions_reused=0,
        )  # fmt: skip


@pytest.fixture(scope="module")
def racing(serving: Callable[..., Any], recorded_folder: Any) -> Any:
    """The page over made races; “sixteen” runs in bfloat16 and parts at the 25th token."""

    def load(name: str, report: Any) -> Any:
        return MadeRace("bfloat16", parted=24) if name == "sixteen" else MadeRace()

    return serving(load, ("tests/made", "sixteen"), recorded_folder)


def opened(open_page: Any, url: str, **options: Any) -> Any:
    """The page with the race before the eyes."""
    page = open_page(url, **options)
    page.keyboard.press("Escape")  # the tour
    show(page)
    return page


def show(page: Any) -> None:
    page.get_by_role("tab", name="KV cache", exact=True).click()
    section = page.get_by_role("tab", name="Race", exact=True)
    if section.count():
        section.click()
    page.wait_for_function("window.firstTokenRace && window.firstTokenWork")


def start(page: Any, **fields: Any) -> None:
    for name, value in fields.items():
        page.get_by_label({"count": "New tokens", "prompt": "Prompt of the race"}[name], exact=True).fill(
            str(value)
        )
    page.get_by_role("button", name="Start race").click()


def wait_steps(page: Any, both: int, timeout: float = 20_000) -> None:
    page.wait_for_function(f"firstTokenRace.counters.steps >= {both}", timeout=timeout)


def wait_end(page: Any, timeout: float = 20_000) -> None:
    page.wait_for_function(
        "[...document.querySelectorAll('.ft-race-side .ft-finish')].every(n => n.dataset.state !== 'running')",
        timeout=timeout,
    )


def side(page: Any, name: str) -> Any:
    return page.get_by_role("region", name=name, exact=True)


def counts(scope: Any) -> dict[str, list[str]]:
    """The table of counts, by the head of its rows."""
    rows = scope.get_by_role("table", name="Work of both sides").get_by_role("row").all()[1:]
    return {
        row.get_by_role("rowheader").inner_text(): row.get_by_role("cell").all_inner_texts() for row in rows
    }


def expected(prompt: int, cached_tokens: int, uncached_tokens: int | None = None) -> dict[str, list[str]]:
    new = [cached_tokens, cached_tokens if uncached_tokens is None else uncached_tokens]
    sides = [work(prompt, n, cached=cached) for n, cached in zip(new, (True, False), strict=True)]
    return {
        "Keys and values computed": [f"{one.kv_computed:,}" for one in sides],
        "Dot products needed": [f"{one.attention_dot_products_needed:,}" for one in sides],
        "Dot products computed": [f"{one.attention_dot_products_computed:,}" for one in sides],
    }


def ticks(page: Any) -> tuple[int, int]:
    svg = page.locator(".ft-race-times")
    return int(svg.get_attribute("data-equal")), int(svg.get_attribute("data-compared"))


WATCH_LENGTHS = """() => {
  window.seenLengths = [];
  const look = () => {
    const texts = [...document.querySelectorAll('.ft-race-text')];
    if (texts.length) window.seenLengths.push(texts.map((node) => node.textContent.length));
    requestAnimationFrame(look);
  };
  look();
}"""


def test_both_sides_grow_and_the_counts_are_those_of_the_run(open_page: Any, racing: Any) -> None:
    """Case 33: a tick for every step with equal tokens, and the largest difference of the logits."""
    page = opened(open_page, racing.url)
    page.evaluate(WATCH_LENGTHS)
    start(page, count=STEPS)
    wait_steps(page, 2 * STEPS)
    wait_end(page)
    for lengths in zip(*page.evaluate("window.seenLengths"), strict=True):
        assert list(lengths) == sorted(lengths)
        assert len(set(lengths)) >= 5, "the text came in lumps"
    assert ticks(page) == (STEPS, STEPS)
    times = page.get_by_role("region", name=re.compile("Step time"))
    expect(times).to_contain_text(f"All {STEPS} tokens are the same. The logits differ by at most 0.0004")
    expect(
        page.get_by_role("img", name=f"{STEPS} of {STEPS} compared steps chose the same token")
    ).to_be_visible()
    triangle = page.get_by_role("region", name=re.compile("What is computed"))
    found = counts(triangle)
    assert {name: found[name] for name in expected(1, 1)} == expected(PROMPT_TOKENS, STEPS)
    expect(triangle).to_contain_text("897 of them")


def test_before_the_first_race_a_recorded_one_is_shown(
    open_page: Any, serving: Callable[..., Any], tmp_path: Path
) -> None:
    recorded, request = Race(), Request("a", (replace(GREEDY, max_new_tokens=STEPS),), run="recorded-race")
    for item in MadeRace().race(request, Control()):
        follow(recorded, item)
    dump_trace(recorded, tmp_path / EXAMPLE)
    page = opened(open_page, serving(lambda name, report: MadeRace(), ("tests/made",), tmp_path).url)
    wait_steps(page, 2 * STEPS)
    stage = page.locator("#stage-race")
    expect(stage).to_contain_text("Recorded example, press Start race for yours")
    found = counts(page.locator(".ft-card-triangle"))
    assert {name: found[name] for name in expected(1, 1)} == expected(PROMPT_TOKENS, STEPS)
    assert ticks(page) == (STEPS, STEPS)
    expect(page.locator("#race-steps")).to_be_hidden()
    start(page, count=4)
    expect(stage.locator(".ft-label")).to_be_hidden()
    wait_end(page)
    assert ticks(page) == (4, 4)


def test_a_finished_race_has_its_figure_and_its_table(open_page: Any, racing: Any) -> None:
    page = opened(open_page, racing.url)
    steps = page.locator("#race-steps")
    expect(steps).to_be_hidden()
    page.get_by_role("button", name="Start race").click()
    expect(steps.locator(".finding")).to_contain_text("with the cache", timeout=20_000)
    steps.get_by_text("Table", exact=True).click()
    expect(steps.locator("tbody tr")).to_have_count(STEPS - 1)
    expect(steps.get_by_text("CSV", exact=True)).to_be_visible()
    page.reload()
    show(page)
    expect(page.locator("#race-steps .finding")).to_contain_text("with the cache", timeout=20_000)


def test_the_triangle_has_the_areas_that_are_counted(open_page: Any, racing: Any) -> None:
    """The cells that are filled are as many as the keys and values computed on each side."""
    page = opened(open_page, racing.url)
    start(page, count=20)
    wait_steps(page, 40)
    wait_end(page)
    page.wait_for_timeout(200)
    cells = page.evaluate(CELLS, [PROMPT_TOKENS + 19, 20])
    assert cells == [work(PROMPT_TOKENS, 20, cached=cached).kv_computed for cached in (True, False)]


CELLS = """([columns, rows]) => [...document.querySelectorAll('.ft-card-triangle .ft-triangle')].map((svg) => {
  const box = svg.querySelector('.ft-cell-ahead').getBBox();
  const filled = [...svg.querySelectorAll('.ft-cell-again, .ft-cell-prompt, .ft-cell-new')];
  const point = svg.createSVGPoint();
  let cells = 0;
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      point.x = box.x + ((column + .5) * box.width) / columns;
      point.y = box.y + ((row + .5) * box.height) / rows;
      cells += filled.filter((path) => path.getAttribute('d') && path.isPointInFill(point)).length;
    }
  }
  return cells;
})"""


def test_stop_ends_both_and_keeps_what_there_is(open_page: Any, racing: Any) -> None:
    page = opened(open_page, racing.url)
    start(page, prompt="slow")
    wait_steps(page, 6)
    page.get_by_role("button", name="Stop race").click()
    wait_end(page, 2_000)
    steps = page.evaluate("firstTokenRace.counters.steps")
    page.wait_for_timeout(400)
    assert 6 <= page.evaluate("firstTokenRace.counters.steps") == steps < 2 * STEPS
    for name in ("With the cache", "Without the cache"):
        expect(side(page, name)).to_contain_text("stopped")
        expect(side(page, name)).to_contain_text("gravity")
    equal, compared = ticks(page)
    assert equal == compared == steps // 2
    assert (
        counts(page.locator(".ft-card-triangle"))["Keys and values computed"]
        == expected(PROMPT_TOKENS, compared)["Keys and values computed"]
    )


def test_a_reload_finds_the_race(open_page: Any, racing: Any, reload: Any) -> None:
    page = opened(open_page, racing.url)
    start(page)
    wait_steps(page, 10)
    before = page.evaluate("sessionStorage.getItem('first-token.run.race')")
    reload(page)
    show(page)
    wait_steps(page, 2 * STEPS)
    assert page.evaluate("sessionStorage.getItem('first-token.run.race')") == before
    assert ticks(page) == (STEPS, STEPS)


def test_in_16_bit_equality_is_ticked_and_never_claimed(open_page: Any, racing: Any) -> None:
    """Case 33."""
    page = opened(open_page, racing.url)
    page.get_by_role("tab", name="Playground").click()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="sixteen").click()
    show(page)
    start(page, count=STEPS)
    wait_steps(page, 2 * STEPS)
    wait_end(page)
    assert ticks(page) == (24, 25)
    times = page.get_by_role("region", name=re.compile("Step time"))
    expect(times).to_contain_text("The sides part at token 25")
    expect(times).to_contain_text("0.00025")
    expect(times).not_to_contain_text("All ")
    expect(page.locator("#stage-race")).to_contain_text("equality is not promised")
    expect(side(page, "Without the cache").locator(".ft-race-parting")).to_have_text(" other")


def test_a_model_that_needs_its_cache_is_one_sentence(open_page: Any, racing: Any) -> None:
    page = opened(open_page, racing.url)
    start(page, prompt="refuse")
    expect(page.locator("#stage-race").get_by_role("alert")).to_have_text(REFUSAL)
    expect(side(page, "With the cache")).to_be_hidden()
    start(page, prompt="What is gravity?", count=0)
    expect(page.locator("#stage-race").get_by_role("alert")).to_contain_text("1 to 512 new tokens, not 0")


@pytest.mark.alone
def test_the_articles_figures_need_no_model(open_page: Any, serving: Any) -> None:
    def never(name: str, report: Any) -> Any:
        time.sleep(5)
        raise CannotLoad("This model never comes; nothing was changed.")

    page = opened(open_page, serving(never).url)
    figures = page.locator("#stage-work")
    expect(figures).to_contain_text("500,500 key and value pairs without the cache, 1,000 with it")
    assert counts(figures)["Dot products computed"] == ["500,500", "167,167,000"]
    began = time.monotonic()
    page.get_by_label("New tokens, n =").fill("64")
    expect(figures).to_contain_text("64 tokens after a prompt of 1: 2,080")
    assert time.monotonic() - began < 2
    page.get_by_label("Prompt tokens, p =").fill("34")
    expect(figures).to_contain_text(f"{work(34, 64, cached=False).kv_computed:,} key and value pairs")
    page.get_by_label("New tokens, n =").fill("-3")
    expect(figures.get_by_role("alert")).to_contain_text("from no new token upwards")


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_is_wider_than_the_page(open_page: Any, racing: Any, width: int) -> None:
    page = opened(open_page, racing.url, viewport={"width": width, "height": 844})
    start(page, count=16)
    wait_steps(page, 32)
    wait_end(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.locator(".ft-triangle").first.evaluate("n => n.getBoundingClientRect().width")
    assert math.floor(wide) > (250 if width < 700 else 400)


@pytest.mark.model
def test_the_race_of_the_default_model(open_page: Any, on_model: Any) -> None:
    """Case 33: in fp32 every token is equal, and the page's counts are those of the command."""
    page = opened(open_page, on_model.url)
    start(page, count=12)
    page.locator("#stage-race .ft-label").wait_for(state="hidden", timeout=60_000)  # the recorded one is gone
    wait_steps(page, 24, timeout=60_000)
    wait_end(page)
    assert ticks(page) == (12, 12)
    race = page.evaluate("firstTokenRace.counters")
    assert race["gaps"] == 0
    prompt = int(re.search(r"p = ([\d,]+) prompt tokens", page.locator(".ft-card-triangle").inner_text())[1])
    found = counts(page.locator(".ft-card-triangle"))
    assert {name: found[name] for name in expected(1, 1)} == expected(prompt, 12)


@pytest.mark.model
def test_old_keys_and_values_do_not_change(open_page: Any, on_model: Any) -> None:
    page = opened(open_page, on_model.url)
    page.get_by_role("button", name="Recompute old keys and values").click()
    line = page.locator("#recheck-line")
    expect(line).to_contain_text("They did not change", timeout=60_000)
    expect(line).to_contain_text("in 30 layers")
    differ = float(page.locator(".recheck-finding").get_attribute("data-differ"))
    assert 0 <= differ < 0.01
