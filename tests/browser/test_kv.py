"""The tab KV cache in a browser, by role and name."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.test_page import start

pytestmark = pytest.mark.browser


@pytest.fixture
def calculator(open_page: Callable[..., Any], replaying: Any) -> Any:
    """A page whose calculator is in view."""
    page = open_page(replaying.url)
    open_section(page, "Calculator")
    return page


def open_section(page: Any, name: str, tab: str = "KV cache") -> None:
    page.get_by_role("tab", name=tab, exact=True).click()
    page.get_by_role("tab", name=name, exact=True).click()


def result(page: Any, title: str = "KV cache, computed") -> Any:
    return page.get_by_role("region", name=title)


def field(page: Any, name: str) -> Any:
    return page.locator("#calculator-controls").get_by_label(name, exact=True)


def test_the_articles_figures(calculator: Any) -> None:
    """Cases 34 and 39, on the page."""
    page = calculator
    expect(result(page)).to_contain_text("16 GiB")
    expect(result(page)).to_contain_text("16,060,522,496 bytes")
    levels = page.locator("#calculation-drilldown li")
    for place, text in enumerate(("256 B", "512 B", "4,096 B", "131,072 B", "512 MiB", "16 GiB")):
        expect(levels.nth(place)).to_contain_text(text)
    both = result(page, "128,000 is not 128 Ki")
    expect(both).to_contain_text("15.6 GiB")
    page.get_by_role("button", name="128,000", exact=True).click()
    expect(result(page)).to_contain_text("15.6 GiB")
    expect(result(page)).to_contain_text("One sequence of 128,000 tokens")


def test_a_model_of_the_catalog_and_a_format(calculator: Any) -> None:
    """Case 36: used and allocated; 4-bit with what its groups share."""
    page = calculator
    page.get_by_role("button", name="128,000", exact=True).click()
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="gpt-oss 120b").click()
    expect(result(page)).to_contain_text("gpt-oss 120b")
    expect(result(page)).to_contain_text("Allocated")
    page.locator("#calculator-dtype").get_by_role("radio", name="4-bit").check()
    expect(result(page)).to_contain_text("4.5 bits with the scale and zero of every 64")


def test_a_pasted_config_wins_and_a_bad_one_is_a_sentence(calculator: Any) -> None:
    page = calculator
    page.get_by_role("button", name="Another config").click()
    text = page.get_by_role("textbox", name="The text of a config.json")
    text.fill('{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, '
              '"hidden_size": 1024, "model_type": "${alert(1)}<b>{{1+1}}"}')  # fmt: skip
    expect(result(page)).to_contain_text("112 KiB")
    expect(result(page)).to_contain_text("${alert(1)}<b>{{1+1}}")
    text.fill('{"num_attention_heads": 0}')
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("num_attention_heads must be a whole number above 0")
    expect(result(page)).to_be_hidden()
    text.fill("{")
    expect(alert).to_contain_text("begins like JSON and is not")
    text.fill("")
    expect(result(page)).to_contain_text("Llama 3.1 8B")
    expect(alert).to_be_hidden()


def test_a_config_from_a_file_and_one_that_is_too_long(calculator: Any) -> None:
    page = calculator
    page.get_by_role("button", name="Another config").click()
    config = b'{"num_hidden_layers": 12, "n_embd": 768, "n_head": 12, "model_type": "gpt2"}'
    choose(page, b'{"a": "' + b"x" * 10 * 2**20 + b'"}')
    expect(page.get_by_role("alert")).to_have_text("config must be text of at most 1,000,000 characters.")
    expect(result(page)).to_be_hidden()
    choose(page, config)
    expect(result(page)).to_contain_text("36 KiB")
    expect(page.get_by_role("alert")).to_be_hidden()


def choose(page: Any, content: bytes) -> None:
    """Choose a file of this content as the config."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload a config.json").click()
    chooser.value.set_files({"name": "config.json", "mimeType": "application/json", "buffer": content})


def test_numbers_out_of_range_are_a_sentence(calculator: Any) -> None:
    page = calculator
    field(page, "Tokens").fill("0")
    expect(page.get_by_role("alert")).to_contain_text("tokens must be a whole number from 1 to")
    field(page, "Tokens").fill("8192")
    expect(result(page)).to_contain_text("32 GiB")


def test_what_fits_is_told_in_words_and_marked(calculator: Any) -> None:
    page = calculator
    card = page.locator("#calculation-capacity")
    expect(card).to_contain_text("fit on NVIDIA H100 SXM")
    expect(card.locator("td.asked")).to_contain_text("fits")
    page.get_by_role("combobox", name="Memory of").click()
    page.get_by_role("option", name="NVIDIA L4", exact=True).click()
    expect(card).to_contain_text("do not fit on NVIDIA L4")
    expect(card.locator("td.asked")).to_contain_text("does not fit")


def test_memory_of_the_last_run(open_page: Callable[..., Any], replaying: Any) -> None:
    page = open_page(replaying.url)
    open_section(page, "Memory")
    expect(result(page, "KV cache before any run")).to_contain_text("its cache is empty")
    page.get_by_role("tab", name="Playground", exact=True).click()
    start(page)
    page.wait_for_function("sessionStorage.getItem('first-token.run.run')")
    page.get_by_role("tab", name="KV cache", exact=True).click()
    last = result(page, "The last run's KV cache, measured")
    growing = result(page, "The KV cache of the run under way, measured")
    expect(growing.or_(last)).to_contain_text(
        "4 of the prompt"
    )  # a slow machine comes too late to see it grow
    expect(last).to_contain_text(
        "83 tokens", timeout=15_000
    )  # 4 of the prompt, 80 chosen, the last not in yet
    expect(last).to_contain_text("equal")
    expect(last).to_contain_text("3,824,640 bytes, measured")
    outlook = result(page, "If it went on at this pace")
    expect(outlook).to_contain_text(re.compile(r"context of 8,192 tokens is full after 8,108 more"))
    expect(page.locator("#memory-token li").first).to_contain_text("256 B")


def test_sections_speak_the_pages_language(calculator: Any) -> None:
    page = calculator
    page.get_by_role("button", name="EN / 中文").click()
    expect(page.get_by_role("tab", name="计算器")).to_be_visible()
    expect(result(page, "KV 缓存，计算值")).to_contain_text("16 GiB")
    expect(page.locator("#calculation-capacity")).to_contain_text("放得下什么")


def test_it_works_before_any_model_is_there(open_page: Callable[..., Any], serving: Any) -> None:
    import threading

    never = threading.Event()
    served = serving(lambda name, report: never.wait(30))
    page = open_page(served.url)
    open_section(page, "Memory")
    expect(result(page, "KV cache before any run")).to_contain_text("No model is loaded yet")
    page.get_by_role("tab", name="Calculator", exact=True).click()
    page.get_by_role("button", name="131,072", exact=True).click()
    expect(result(page)).to_contain_text("One sequence of 131,072 tokens")
    never.set()


def test_nothing_is_wider_than_a_phone(open_page: Callable[..., Any], replaying: Any) -> None:
    page = open_page(replaying.url, viewport={"width": 390, "height": 844}, has_touch=True)
    page.keyboard.press("Escape")
    for name in ("Memory", "Calculator"):
        open_section(page, name)
        page.wait_for_timeout(400)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
