"""How a run goes on, on the default model, by role and name: pause, steps, back, branches; by the keyboard too."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.model]

STEPS = "firstTokenStage.counters.steps"


def steps(page: Page) -> int:
    return int(page.evaluate(STEPS))


def texts(page: Page) -> list[str]:
    return page.locator(".ft-answer .ft-token[data-i]").all_text_contents()


@pytest.fixture
def page(open_page: Any, on_model: Any) -> Page:
    """A page whose next run has 24 tokens, sampled with seed 5."""
    page: Page = open_page(on_model.url)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("What is gravity? Answer in two sentences.")
    page.get_by_role("textbox", name="Seed").fill("5")
    page.get_by_role("spinbutton", name="At most").fill("24")
    return page


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def ended(page: Page, count: int) -> None:
    page.wait_for_function(
        f"{STEPS} === {count} && firstTokenStage.counters.backlog === 0"
        " && !document.querySelector('.ft-label:not([hidden])')",
        timeout=60_000,
    )
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_disabled(timeout=30_000)


def test_a_run_stands_steps_plays_and_goes_back(page: Page) -> None:
    step, play, pause, back = (
        page.get_by_role("button", name=name, exact=True) for name in ("Step", "Play", "Pause", "Back")
    )
    step.click()  # from nothing: the prompt is read and one token chosen
    page.wait_for_function(f"{STEPS} === 1", timeout=60_000)
    expect(play).to_be_enabled()
    expect(page.locator(".ft-transport-said")).to_contain_text("Paused")
    step.click()
    page.wait_for_function(f"{STEPS} === 2")
    page.locator(".ft-answer .ft-token").first.press(".")
    page.wait_for_function(f"{STEPS} === 3")
    page.wait_for_timeout(300)
    assert steps(page) == 3  # and stands
    page.get_by_role("combobox", name="Speed").select_option("5")
    play.click()
    pause.click()
    expect(pause).to_be_disabled()
    held = steps(page)
    page.wait_for_timeout(500)
    assert steps(page) - held <= 1
    page.get_by_role("combobox", name="Speed").select_option("")
    play.click()
    ended(page, 24)
    whole = texts(page)

    page.locator(".ft-answer .ft-token[data-i='9']").click()
    back.click()
    page.wait_for_function(f"{STEPS} === 10")
    expect(page.locator(".ft-transport-said")).to_contain_text("Paused")
    assert texts(page) == whole[:10]
    play.click()
    ended(page, 24)
    assert texts(page) == whole  # the same draws again
    expect(page.locator(".ft-transport-said")).to_contain_text("1 position computed, 48 reused")


def test_branches_part_where_asked_and_one_can_return(page: Page, reload: Any) -> None:
    press(page, "Generate")
    ended(page, 24)
    whole = texts(page)
    page.locator(".ft-answer .ft-token[data-i='6']").focus()
    card = page.get_by_role("region", name="Candidates")
    card.get_by_role("button", name="branch", exact=True).press("Enter")
    choices = card.get_by_role("group", name="Candidates at this step").get_by_role("button")
    other = choices.nth(1)
    other.press("Enter")
    tree = page.get_by_role("region", name="Branches")
    expect(tree.get_by_role("listitem")).to_have_count(2, timeout=30_000)
    ended(page, 24)
    branch = texts(page)
    assert branch[:6] == whole[:6] and branch[6] != whole[6]

    page.locator(".ft-answer .ft-token[data-i='3']").focus()
    card.get_by_role("textbox", name="or go on with your own words").fill(" the moon <b>")
    press(page, "Go on")
    expect(tree.get_by_role("listitem")).to_have_count(3, timeout=30_000)
    page.wait_for_function(
        "document.querySelector('.ft-answer').textContent.includes(' the moon <b>')", timeout=30_000
    )
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_disabled(timeout=30_000)
    assert "".join(texts(page)).startswith("".join(whole[:3]) + " the moon <b>")

    page.locator(".ft-answer .ft-token[data-i='3']").focus()
    card.get_by_role("combobox", name="What to do").select_option("ban")
    card.get_by_role("combobox", name="For how long").select_option("whole")
    choices.nth(0).click()
    expect(tree.get_by_role("listitem")).to_have_count(4, timeout=30_000)
    expect(card.locator(".ft-rows")).to_contain_text("banned", timeout=30_000)

    tree.get_by_role("button").first.press("Enter")  # the first run again
    ended(page, 24)
    expect(tree.get_by_role("button").first).to_have_attribute("aria-current", "true", timeout=30_000)
    assert texts(page) == whole
    reload(page)
    expect(page.get_by_role("region", name="Branches").get_by_role("listitem")).to_have_count(
        4, timeout=30_000
    )
