"""A link fills the page and starts nothing; what is copied on one page opens the same on another."""

from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

FIELDS = {
    "temperature": "#control-temperature input[type=number]",
    "top_k": "#control-top_k input[type=number]",
    "seed": "#control-seed :is(input, textarea)",
    "max_new_tokens": "#control-max_new_tokens input",
}


def address(url: str, **asked: object) -> str:
    return f"{url}#{urlencode({'first-token': 1, **asked}, doseq=True)}"


def shown(page: Any) -> dict[str, str]:
    values = {name: page.locator(where).first.input_value() for name, where in FIELDS.items()}
    return values | {
        "prompt": page.locator("#prompt textarea").input_value(),
        "mode": page.locator("#mode input:checked").input_value(),
    }


def note(page: Any, where: str = "#link-note") -> Any:
    return page.locator(f"{where} .link-note")


def test_a_link_fills_the_page_and_starts_nothing(open_page: Any, replaying: Any) -> None:
    asked = {
        "temperature": "1.25",
        "top_k": "7",
        "seed": "42",
        "max_new_tokens": "9",
        "prompt": "a&b #c\n“聪”",
        "mode": "raw",
    }
    page = open_page(address(replaying.url, **asked, model="tests/made"))
    expect(note(page)).to_contain_text("nothing has been run yet")
    assert shown(page) == asked
    page.wait_for_timeout(500)
    assert page.evaluate("sessionStorage.getItem('first-token.run.run')") is None
    page.get_by_role("textbox", name="Seed").fill("43")
    page.evaluate("hash => { location.hash = hash }", address("", seed=44, top_p=0.5).lstrip("#"))
    expect(page.locator(FIELDS["seed"]).first).to_have_value("44")
    expect(page.locator("#prompt textarea")).to_have_value("")


def test_what_is_copied_opens_the_same_elsewhere(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url, permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("textbox", name="Prompt", exact=True).fill("One day,\n\tLily & co. 😊")
    page.locator(FIELDS["temperature"]).fill("0.35")
    page.locator(FIELDS["seed"]).first.fill("11")
    page.locator(FIELDS["seed"]).first.blur()
    page.get_by_role("button", name="Copy link", exact=True).click()
    expect(page.locator("#link-playground .link-copied")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"{replaying.url}/#first-token=1&")
    before = shown(page)
    assert before["temperature"] == "0.35"
    other = open_page(copied, locale="zh-CN")
    expect(note(other)).to_contain_text("尚未运行")
    assert shown(other) == before


def test_a_hostile_link_is_a_sentence(open_page: Any, replaying: Any) -> None:
    script = "<img src=x onerror=\"document.title='owned'\">"
    page = open_page(
        address(replaying.url, prompt=script, model=script, temperature="hot", top_p=9, order="${1+1}")
    )
    expect(note(page)).to_contain_text("except for Temperature, Top-p, Order of stages")
    expect(note(page)).to_contain_text("does not have")
    assert page.locator("#prompt textarea").input_value() == script
    assert page.locator(".link-note *").count() == 0
    assert page.locator(FIELDS["temperature"]).input_value() == "0.7"
    assert page.title() == "First Token"
    page.evaluate("location.hash = 'first-token=9&prompt=x'")
    expect(note(page)).to_contain_text("newer version")
    page.evaluate("location.hash = 'first-token=1&prompt=' + 'a'.repeat(1_000_000)")
    expect(note(page)).to_contain_text("cannot be read")
    assert page.evaluate("sessionStorage.getItem('first-token.link').length") < 33_000
    assert page.locator("#prompt textarea").input_value() == script
    page.evaluate("location.hash = 'first-token=1&model=%E2%80%AEevil'")
    expect(note(page)).to_contain_text("made with \\u202eevil, which")


def test_a_comparison_has_a_link_of_its_own(open_page: Any, replaying: Any) -> None:
    lanes = ["greedy", "temperature=1.4,top_p=1,seed=5", "temperature=hot"]
    page = open_page(address(replaying.url, tab="compare", prompt="Hello", lane=lanes, max_new_tokens=12))
    expect(page.get_by_role("tab", name="Compare")).to_have_attribute("aria-selected", "true")
    expect(note(page, "#compare-link-note")).to_contain_text("except for a run’s settings")
    specs = page.locator("#compare .spec :is(input, textarea)")
    expect(specs).to_have_count(2)
    for n in range(2):
        expect(specs.nth(n)).to_have_value(lanes[n])
    expect(page.get_by_role("combobox", name="Run B", exact=True)).to_have_value("Wild: T 1.4")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link", exact=True).click()
    expect(page.locator("#link-compare .link-copied")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.count("lane=") == 2
    assert "tab=compare" in copied
    page.evaluate("location.hash = 'first-token=9&prompt=x'")
    expect(note(page, "#compare-link-note")).to_contain_text("newer version")  # told where it is looked at


def test_inside_a_space_the_outer_address_is_passed_on(open_page: Any, replaying: Any) -> None:
    outer = open_page(replaying.url)
    outer.evaluate(
        "url => { document.body.innerHTML = `<iframe src='${url}' style='width:1200px;height:900px'></iframe>` }",
        replaying.url,
    )
    frame = outer.frame_locator("iframe")
    expect(frame.get_by_role("button", name="Copy link", exact=True)).to_be_visible()
    inner = outer.frames[1]
    inner.evaluate(
        "() => { const fact = document.createElement('meta'); fact.name = 'first-token-space';"
        " fact.content = 'https://huggingface.co/spaces/someone/space'; document.head.append(fact);"
        " navigator.clipboard.writeText = () => Promise.reject(new Error('not here')); }"
    )
    frame.get_by_role("button", name="Copy link", exact=True).click()
    field = frame.get_by_role("textbox", name="Address of these settings")
    expect(field).to_be_visible()
    assert field.input_value().startswith("https://huggingface.co/spaces/someone/space#first-token=1&")


def test_a_path_of_this_machine_stays_here_and_drawn_seeds_go_along(open_page: Any, replaying: Any) -> None:
    page = open_page(replaying.url)
    names = page.evaluate(
        "async names => (await import('/first-token/links.js').then((m) => names.map(m.modelName)))",
        [
            "owner/model",
            "/home/me/secret/model",
            "C:\\Users\\me\\model",
            "../up/model",
            "~/models/own.gguf",
            "gpt2",
        ],
    )
    specs = page.evaluate(
        "async specs => (await import('/first-token/links.js')).withSeeds(specs, [1, 2, 3, 4])",
        ["greedy", "temperature=1", "top_p=0.5,seed=9", 'stop="seed=1",top_k=3'],
    )
    assert specs == ["greedy", "temperature=1,seed=2", "top_p=0.5,seed=9", 'stop="seed=1",top_k=3,seed=4']
    assert names == ["owner/model", "model", "model", "model", "own.gguf", "gpt2"]
