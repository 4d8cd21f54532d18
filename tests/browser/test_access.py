"""The page for everyone: axe on every tab in both themes, keyboard alone, announcements, motion, direction, weight."""

import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.core.events import Stepped
from playground.core.run import fold
from playground.views.packets import recorded_packet
from tests.browser.conftest import RUN_STEPS, made_run

pytestmark = pytest.mark.browser

AXE = (files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
RULES = {
    "light": "{resultTypes: ['violations'], rules: {'target-size': {enabled: true}}}",
    "dark": "{resultTypes: ['violations'], runOnly: ['color-contrast', 'link-in-text-block']}",
}
"""All rules, the one of WCAG 2.2 among them, which axe leaves off by default; in the dark what depends on it."""

PHONE = {"width": 390, "height": 844}
STEPS = "firstTokenStage.counters.steps"
FIRST_PAINT_SECONDS = 3.0
TRANSFERRED_BYTES = 6 * 10**6


def faults(page: Any, where: str, theme: str = "light") -> list[str]:
    """Serious and critical findings of axe, one line each, that are still there when all has come to rest."""
    if not page.evaluate("typeof axe !== 'undefined'"):
        page.evaluate(AXE)
    found = _found(page, where, theme)
    if found:  # a busy machine may have been looked at while it was drawing
        page.wait_for_timeout(1_000)
        found = _found(page, where, theme)
    return found


def _found(page: Any, where: str, theme: str) -> list[str]:
    found = page.evaluate(f"axe.run(document, {RULES[theme]}).then(r => r.violations)")
    return [
        f"{where}: {one['id']}: {node['html'][:160]} {[why['message'] for why in node['any']]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"][:3]
    ]


def places(page: Any) -> Iterator[str]:
    """Every tab, and every section inside one, opened in turn."""
    for tab in page.locator("#tabs > .tab-wrapper").get_by_role("tab").all():
        tab.click()
        page.wait_for_timeout(150)
        inside = page.locator("#tabs .tabitem .tab-wrapper").get_by_role("tab")
        sections = [section for section in inside.all() if section.is_visible()]
        for section in sections:
            section.click()
            page.wait_for_timeout(80)
            drawn(page)
            yield f"{tab.inner_text()}/{section.inner_text()}"
        if not sections:
            yield tab.inner_text()
        if tab.inner_text() == "Learn":
            onward = page.locator("#tabs .tabitem").get_by_role("button", name="Next", exact=True)
            for chapter in range(2, 10):
                onward.click()
                page.get_by_text(f"Chapter {chapter} of 9").first.wait_for()
                yield f"Learn/{chapter}"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_tab(open_page: Any, replaying: Any, theme: str) -> None:
    page = open_page(replaying.url, color_scheme=theme, reduced_motion="reduce")
    found = faults(page, "tour", theme)
    page.keyboard.press("Escape")
    seen = []
    for where in places(page):
        seen.append(where)
        found += faults(page, where, theme)
    page.get_by_role("tab", name="Playground").click()
    page.get_by_role("button", name="prove it", exact=True).click()
    found += faults(page, "proof", theme)
    assert {"Playground", "Compare", "KV cache/Race", "Learn/9", "Traces"} <= set(seen), seen
    assert found == []


def drawn(page: Any) -> None:
    """Wait until no figure is still gradio's placeholder, whose markup is its own."""
    expect(page.locator("[aria-label='Empty value']:visible")).to_have_count(0)


def test_axe_on_a_phone_with_a_token_open(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url, viewport=PHONE, has_touch=True, reduced_motion="reduce")
    page.keyboard.press("Escape")
    page.locator(".ft-answer .ft-token").nth(3).tap()
    expect(page.get_by_role("dialog", name="Token")).to_be_visible()
    found = faults(page, "sheet")
    page.keyboard.press("Escape")
    for where in places(page):
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], where
    assert found == []


def focused(page: Any) -> dict[str, Any]:
    """What has the focus, and whether it can be seen to have it."""
    return page.evaluate(
        """() => {
          const at = document.activeElement, seen = (node) => {
            const style = node && getComputedStyle(node);
            return style && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
          };
          return {
            name: at.getAttribute('aria-label') ?? at.innerText ?? '', tag: at.tagName, token: at.matches('.ft-token'),
            prompt: at.matches('#prompt textarea'), id: at.id,
            seen: [at, at.firstElementChild, at.querySelector('.ft-ink'), at.parentElement, at.closest('label'),
              at.closest('.wrap')].some(seen),
          };
        }"""
    )


def tab_to(page: Any, wanted: str, most: int = 60) -> list[dict[str, Any]]:
    """Press Tab until what has the focus is `wanted`; everything that had it on the way."""
    path = []
    for _ in range(most):
        page.keyboard.press("Tab")
        path.append(focused(page))
        if path[-1][wanted]:
            return path
    raise AssertionError(f"Tab never reached {wanted}: {[stop['name'][:20] for stop in path]}")


def test_the_main_job_by_keyboard_alone(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    page.keyboard.press("Escape")
    path = tab_to(page, "prompt")
    page.keyboard.press("Control+a")
    page.keyboard.type("Why is the sky blue?")
    page.keyboard.press("Control+Enter")
    page.wait_for_function("sessionStorage.getItem('first-token.run.run')")
    page.wait_for_function(f"{STEPS} >= 4")
    path += tab_to(page, "token")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("region", name="Candidates")).to_contain_text("Token 2 of the answer")
    page.keyboard.press("Escape")
    page.wait_for_timeout(400)
    stopped = page.evaluate(STEPS)
    page.wait_for_timeout(400)
    assert 4 <= page.evaluate(STEPS) == stopped < RUN_STEPS
    path += [focused(page)]
    assert [stop["name"] or stop["tag"] for stop in path if not stop["seen"]] == []
    assert page.locator("#prompt textarea").input_value() == "Why is the sky blue?"


def test_the_stream_is_told_in_sentences(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    page.evaluate(
        """() => {
          window.told = [];
          const place = document.querySelector('.ft-run > [aria-live=polite]');
          new MutationObserver(() => place.textContent && told.push(place.textContent))
            .observe(place, {childList: true});
        }"""
    )
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function(f"{STEPS} >= {RUN_STEPS}")
    page.wait_for_function("told.some(text => text.includes('ended by'))")
    told = page.evaluate("told")
    assert 1 <= len(told) <= RUN_STEPS / 8
    assert "gravity" in " ".join(told)


def test_nothing_moves_for_who_asked_for_less_motion(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url, reduced_motion="reduce")
    moving = page.evaluate(
        """() => [...document.querySelectorAll('*')].flatMap((node) => {
          const style = getComputedStyle(node);
          const longest = (text) => Math.max(...text.split(',').map(parseFloat));
          return Math.max(longest(style.transitionDuration), longest(style.animationDuration)) > 0.01
            ? [`${node.tagName}.${node.className}`] : [];
        })"""
    )
    assert moving == []


def test_a_right_to_left_text_runs_to_the_left(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    page.keyboard.press("Escape")
    box = page.get_by_role("textbox", name="Prompt", exact=True)
    box.fill("ما هي الجاذبية؟")
    assert box.evaluate("box => getComputedStyle(box).unicodeBidi") == "plaintext"
    words = ("الجاذبية", " هي", " قوة", " abc", " تجذب")
    events = [
        replace(event, text=words[event.step % 5], token=replace(event.token, text=words[event.step % 5]))
        if isinstance(event, Stepped) else event
        for event in made_run(10, run="rtl").events
    ]  # fmt: skip
    page.evaluate("packet => firstTokenStage.packet(packet)", recorded_packet(fold(events).events))
    answer = page.locator(".ft-answer")
    expect(answer).to_have_css("direction", "rtl")
    first, second = (answer.locator(".ft-token").nth(n).bounding_box() for n in range(2))
    assert first["x"] > second["x"]
    answer.locator(".ft-token").first.click()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("region", name="Candidates")).to_contain_text("Token 2 of the answer")
    assert (
        page.locator(".ft-rows .ft-name").first.evaluate("node => getComputedStyle(node).unicodeBidi")
        == "isolate"
    )


@pytest.mark.alone
def test_a_cold_browser_sees_the_page_soon_and_loads_little(
    browser: Any, replaying: Any, watched: Any
) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    watched.attach(page)
    received: list[int] = []
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: received.append(event["encodedDataLength"]))
    start = time.monotonic()
    page.goto(replaying.url)
    page.wait_for_function("window.firstTokenStage && firstTokenStage.counters.packets > 0")
    ready = time.monotonic() - start
    page.wait_for_timeout(500)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    print(
        f"first paint {paint:.2f} s, first run shown {ready:.2f} s, {sum(received) / 1e6:.2f} MB in {len(received)}"
    )
    context.close()
    assert paint < FIRST_PAINT_SECONDS
    assert 100_000 < sum(received) < TRANSFERRED_BYTES
