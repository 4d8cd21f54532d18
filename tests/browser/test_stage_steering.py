"""How a run goes on, on the stage alone: what the buttons ask for, and what the answers look like."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.stage_events import packet, send, whole_run

pytestmark = pytest.mark.browser

NAMES = ("Back", "Step", "Play", "Pause")
WORDS = [" a", " force", " that", " pulls", " things"]


def steering(state: str = "ended", **more: Any) -> dict[str, Any]:
    told = {"state": state, "can": True, "back": True, "why": "", "tokens_per_second": None, "branches": []}
    return told | more


def branch(run: str, parent: str | None, text: str, current: bool = False) -> dict[str, Any]:
    return {
        "run": run, "parent": parent, "step": 2, "text": text, "tokens": 5, "forced": False, "current": current
    }  # fmt: skip


def asked(page: Any) -> list[dict[str, Any]]:
    """What the stage asked of the server since the last time."""
    sent = page.evaluate("window.sent.splice(0).filter(([name]) => name === 'steer').map(([, data]) => data)")
    return list(sent)


def enabled(page: Any) -> list[str]:
    return [name for name in NAMES if page.get_by_role("button", name=name, exact=True).is_enabled()]


def test_the_buttons_follow_the_state_and_ask_for_what_they_say(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run(WORDS), steering=steering("playing")))
    assert enabled(page) == ["Back", "Step", "Pause"]
    page.get_by_role("button", name="Pause", exact=True).click()
    send(page, packet([], first=8, seq=1, steering=steering("paused")))
    assert enabled(page) == ["Back", "Step", "Play"]
    for name in ("Step", "Play"):
        page.get_by_role("button", name=name, exact=True).click()
    page.get_by_role("combobox", name="Speed").select_option("5")
    page.get_by_role("combobox", name="Speed").select_option("")
    assert asked(page) == [
        {"run": "r", "action": "pause"},
        {"run": "r", "action": "step"},
        {"run": "r", "action": "play"},
        {"run": "r", "action": "speed", "tokens_per_second": 5},
        {"run": "r", "action": "speed", "tokens_per_second": None},
    ]


def test_back_keeps_the_tokens_up_to_the_cursor_by_key_too(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run(WORDS), steering=steering()))
    chips = page.locator(".ft-answer .ft-token[data-i]")
    chips.nth(1).click()
    back = page.get_by_role("button", name="Back", exact=True)
    assert "Back by 3 tokens" in back.get_attribute("title")
    back.click()
    chips.nth(4).press(",")
    chips.nth(4).press(".")
    assert asked(page) == [
        {"run": "r", "action": "back", "step": 2},
        {"run": "r", "action": "back", "step": 4},
        {"run": "r", "action": "step"},
    ]


def test_what_cannot_be_done_is_off_and_says_why(stage: Any) -> None:
    page = stage()
    why = "A recorded run has no <b>model</b>."
    send(page, packet(whole_run(WORDS), steering=steering("none", can=False, back=False, why=why)))
    assert enabled(page) == []
    assert page.get_by_role("button", name="Step", exact=True).get_attribute("title") == why
    page.locator(".ft-answer .ft-token[data-i]").nth(1).press(".")
    assert asked(page) == []


def test_branches_are_named_walked_and_brought_back(stage: Any) -> None:
    page = stage()
    tree = page.get_by_role("region", name="Branches")
    first, second = branch("r", None, " a"), branch("s", "r", "<img src=x>", current=True)
    send(page, packet(whole_run(WORDS), steering=steering(branches=[first])))
    assert tree.count() == 0
    send(page, packet([], first=8, seq=1, steering=steering(branches=[first, second])))
    rows = tree.get_by_role("button")
    assert "<img src=x>" in rows.nth(1).inner_text()
    assert [rows.nth(i).get_attribute("aria-current") for i in (0, 1)] == [None, "true"]
    rows.nth(0).press("ArrowDown")
    page.keyboard.press("Enter")
    assert asked(page) == [{"run": "r", "action": "show", "branch": "s"}]


def test_alone_there_is_no_bar(stage: Any) -> None:
    page = stage("quiet&alone")
    send(page, packet(whole_run(WORDS)))
    assert page.locator(".ft-answer .ft-token").first.is_visible()
    assert not page.locator(".ft-transport").is_visible()


def test_a_record_is_walked_again_until_somebody_moves(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run(WORDS)))
    cursor = page.get_by_role("slider", name="Cursor over the tokens")
    page.get_by_role("combobox", name="Speed").select_option("20")
    page.get_by_role("button", name="Replay", exact=True).click()
    assert cursor.get_attribute("aria-valuenow") == "1"
    expect(cursor).to_have_attribute("aria-valuenow", str(len(WORDS)))
    page.get_by_role("combobox", name="Speed").select_option("1")
    page.get_by_role("button", name="Replay", exact=True).click()
    page.locator(".ft-answer .ft-token[data-i]").nth(3).click()
    expect(page.get_by_role("button", name="Replay", exact=True)).to_be_visible(timeout=3000)
    assert cursor.get_attribute("aria-valuenow") == "4" and asked(page) == []
