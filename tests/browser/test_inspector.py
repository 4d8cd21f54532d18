"""The inspector on the default model, by role and name: what the settings did, and what was expected of the prompt."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.model]


@pytest.fixture
def ran(open_page: Any, on_model: Any) -> Any:
    """A page whose own run has ended: 12 tokens with a penalty, top-k and top-p, seed 5."""
    page = open_page(on_model.url)
    page.get_by_role("textbox", name="Prompt", exact=True).fill("What is gravity? Answer in two sentences.")
    page.get_by_role("spinbutton", name="Top-k").fill("40")
    page.get_by_role("textbox", name="Seed").fill("5")
    page.get_by_role("spinbutton", name="At most").fill("12")
    page.get_by_role("button", name="Generate", exact=True).click()
    page.wait_for_function(
        "firstTokenStage.counters.steps === 12 && firstTokenStage.counters.backlog === 0"
        " && !document.querySelector('.ft-label:not([hidden])')",
        timeout=60_000,
    )
    expect(page.locator(".ft-sub")).to_contain_text("limit", timeout=30_000)
    return page


def test_the_way_through_the_settings_names_what_did_nothing(ran: Any) -> None:
    card = ran.get_by_role("region", name="Candidates")
    card.get_by_role("button", name="stages", exact=True).click()
    panel = card.get_by_role("group", name="stages")
    expect(panel).to_contain_text("The chain was run again without each setting", timeout=30_000)
    said = panel.inner_text()
    assert (
        re.search(r"top-k kept [\d.]+ %, top-p [\d.]+ % of that: [\d.]+ % in the end", said)
        or "100 %" in said
    )
    rows = panel.get_by_role("listitem")
    assert [row.split("\n")[0] for row in rows.all_inner_texts()] == [
        "model", "temperature 0.7", "top-k 40", "top-p 0.9", "settings",
    ]  # fmt: skip
    # somewhere in the answer top-k 40 does nothing that top-p would not have done
    timeline = ran.get_by_role("slider", name="Cursor over the tokens")
    timeline.focus()
    timeline.press("Home")
    expect(panel).to_contain_text("did nothing here", timeout=30_000)


def test_the_prompt_is_read_once_more_and_walked_by_the_keyboard(ran: Any, reload: Any) -> None:
    page = ran
    page.get_by_role("button", name="What did the model expect of the prompt?").press("Enter")
    page.wait_for_function("firstTokenStage.counters.events > 16", timeout=30_000)
    timeline = page.get_by_role("slider", name="Cursor over the tokens")
    timeline.press("Home")
    timeline.press("ArrowLeft")
    card = page.get_by_role("region", name="Candidates")
    expect(card.get_by_role("heading", name="Token 39 of the prompt")).to_be_visible()
    expect(card).to_contain_text("Read, not chosen")
    assert card.get_by_role("listitem").count() >= 5
    assert timeline.get_attribute("aria-valuenow") == "0"
    expect(page.get_by_role("region", name="KV cache")).to_contain_text(
        "39 prompt tokens and 0 of the answer"
    )
    events = page.evaluate("firstTokenStage.counters.events")
    reload(page)
    page.wait_for_function(f"firstTokenStage.counters.events === {events}", timeout=30_000)
    assert page.get_by_role("button", name="What did the model expect of the prompt?").count() == 0
