"""Other settings, any text and loops on the default model, by role and name and by the keyboard alone."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

ENDED = (
    "firstTokenStage.counters.steps >= %d && firstTokenStage.counters.backlog === 0"
    " && !document.querySelector('.ft-label:not([hidden])')"
)


def generate(page: Any, prompt: str, count: int, **fields: str) -> None:
    page.get_by_role("textbox", name="Prompt", exact=True).fill(prompt)
    page.get_by_role("spinbutton", name="At most").fill(str(count))
    for name, value in fields.items():
        page.get_by_role("textbox", name=name).fill(value)
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function(ENDED % count, timeout=60_000)
    expect(page.locator(".ft-sub")).to_contain_text("limit", timeout=30_000)


def test_other_settings_and_any_text_at_a_step(open_page: Any, on_model: Any) -> None:
    page = open_page(on_model.url)
    generate(page, "What is gravity? Answer in two sentences.", 16, Seed="5")
    card = page.get_by_role("region", name="Candidates")
    card.get_by_role("button", name="other settings").press("Enter")
    panel = card.get_by_role("group", name="other settings")
    expect(panel).to_contain_text("As it was")
    slider = panel.get_by_role("slider", name="What if temperature")
    slider.press("ArrowRight")
    expect(panel).to_contain_text("computed again", timeout=30_000)
    slider.press("ArrowRight")
    expect(panel).to_contain_text("most probable, kept here", timeout=30_000)
    first = panel.locator(".ft-what-if-row").first
    assert re.search(r"with these settings [\d.]+ %, as it was", first.get_attribute("aria-label"))
    slider.press("End")
    panel.get_by_role("slider", name="What if top-p").press("End")
    panel.get_by_role("button", name="Over the whole run").press("Enter")
    expect(panel).to_contain_text("would have taken another token under the same draw", timeout=30_000)
    other = panel.get_by_role("list", name="Steps that would have gone otherwise").get_by_role("button").first
    step = int(re.match(r"Token (\d+):", other.get_attribute("aria-label")).group(1))
    other.press("Enter")
    expect(card.get_by_role("heading", name=f"Token {step}", exact=False).first).to_be_visible()
    expect(panel).to_contain_text("would have taken", timeout=30_000)

    card.get_by_role("button", name="any text").press("Enter")
    panel = card.get_by_role("group", name="any text")
    field = panel.get_by_role("textbox", name="Text to ask about")
    field.fill(" a mysterious force")
    expect(panel).to_contain_text("␣a mysterious force")
    field.press("Enter")
    expect(panel.get_by_role("listitem")).to_have_count(3, timeout=30_000)
    expect(panel).to_contain_text("along the path")
    path = [float(row.get_attribute("data-logprob")) for row in panel.get_by_role("listitem").all()]
    assert all(value <= 0 for value in path)
    panel.get_by_role("textbox").fill("Berlin")
    expect(panel).to_contain_text("no space before it")


def test_a_loop_is_marked_and_tried_again_with_a_penalty(open_page: Any, on_model: Any) -> None:
    page = open_page(on_model.url)
    page.get_by_role("radio", name="Raw").check()
    page.get_by_role("radio", name="Greedy").check()
    generate(page, "We went to the market and", 48)
    told = page.get_by_role("group", name="Loops")
    expect(told).to_contain_text("times in a row", timeout=30_000)
    chips = page.locator(".ft-answer .ft-token[data-i]")
    ids = chips.evaluate_all("(all) => all.map((one) => one.dataset.id)")
    marked = page.locator(".ft-answer .ft-token.ft-loop").evaluate_all(
        "(all) => all.map((one) => Number(one.dataset.i))"
    )
    begins = page.locator(".ft-answer .ft-token.ft-loop-first").evaluate_all(
        "(all) => all.map((one) => Number(one.dataset.i))"
    )
    first, period = begins[0], begins[1] - begins[0]
    assert marked[0] == first and marked[-1] - first + 1 >= max(12, 3 * period)
    assert ids[first : first + period] == ids[first + period : first + 2 * period]
    told.get_by_role("button", name="Go there").first.press("Enter")
    page.wait_for_function(
        f"document.querySelector('.ft-token[aria-current]').dataset.i === '{first + period}'", timeout=30_000
    )
    told.get_by_role("button", name="Branch before it with a penalty").first.press("Enter")
    tree = page.get_by_role("region", name="Branches")
    expect(tree.get_by_role("listitem")).to_have_count(2, timeout=30_000)
    expect(tree.get_by_role("button").nth(1)).to_have_attribute("aria-current", "true", timeout=30_000)
    expect(tree.get_by_role("button").nth(1)).to_contain_text(f"at token {first + 1}")
    expect(page.get_by_role("spinbutton", name="Repetition penalty")).to_have_value("1.3", timeout=30_000)
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_disabled(timeout=60_000)
    expect(told).to_be_hidden(timeout=30_000)
    branch = chips.evaluate_all("(all) => all.map((one) => one.dataset.id)")
    assert branch[:first] == ids[:first] and branch != ids
    expect(page.locator(".ft-settings")).to_contain_text("penalty 1.3")
    tree.get_by_role("button").first.press("Enter")
    expect(told).to_be_visible(timeout=30_000)
