"""The order of the stages on the page: shown as a line of names, and changed."""

from typing import Any

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

USUAL = "Repetition penalty › Temperature › Top-k › Top-p › Min-p › Typical-p"
LLAMA = "Repetition penalty › Top-k › Typical-p › Top-p › Min-p › Temperature"


def test_the_order_is_shown_and_changed(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    page.locator(".fold > button", has_text="More").click()
    expect(page.get_by_text(USUAL)).to_be_visible()
    expect(page.get_by_text(LLAMA)).to_be_hidden()
    order = page.get_by_role("combobox", name="Order of stages")
    order.click()
    page.get_by_role("option", name="llama.cpp").click()
    expect(page.get_by_text(LLAMA)).to_be_visible()
    expect(page.get_by_text(USUAL)).to_be_hidden()
    expect(page.get_by_role("radio", name="all tokens")).to_be_checked()
    page.get_by_role("button", name="Wild").click()  # a preset is every setting that is seen
    expect(order).to_have_value("transformers")
    expect(page.get_by_text(USUAL)).to_be_visible()
