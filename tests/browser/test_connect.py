"""The tab Connect against a real llama.cpp server: connect, run, what is missing in grey, and back."""

import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.backends.policy import Policy
from playground.engine.wheel import original
from tests.llama_server import running

pytestmark = [pytest.mark.browser, pytest.mark.model]
KEY = "sk-only-for-this-page"
CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    pytest.importorskip("xllamacpp")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with running(original(lambda progress: None), port, KEY) as url:
        yield url


def ask(page: Any, address: str, key: str) -> Any:
    page.get_by_role("tab", name="Connect").click()
    page.get_by_label("Server address").fill(address)
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Connect", exact=True).click()
    return page.locator("#connect-report")


def test_a_run_on_a_real_server_from_the_page(
    open_page: Any, replaying: Any, server: str, watched: Any
) -> None:
    page = open_page(replaying.url)
    report = ask(page, server, "wrong")
    expect(report.get_by_role("alert")).to_contain_text("refused the key")
    expect(page.locator("#model input")).not_to_have_value(re.compile("SmolLM2"))

    report = ask(page, server, KEY)
    expect(report).to_contain_text("SmolLM2-135M-Instruct.Q4_1, llama.cpp at 127.0.0.1")
    expect(report.locator("tr.there")).to_have_count(7)
    expect(report.locator("tr.lacking").last).to_contain_text("need a model on this machine")
    expect(page.get_by_label("Key", exact=True)).to_have_value("")

    page.get_by_role("tab", name="Playground").click()
    expect(page.locator("#model input")).to_have_value(re.compile("SmolLM2.* @ 127.0.0.1"))
    page.locator("#control-max_new_tokens input").first.fill("8")
    page.get_by_role("button", name="Generate", exact=True).click()
    candidates = page.get_by_role("region", name="Candidates").first
    expect(candidates).to_contain_text("The server sent its 20 best candidates", timeout=20_000)
    expect(candidates).to_contain_text("Entropy is at least")
    expect(candidates).to_contain_text("does not tell its")
    expect(page.get_by_role("region", name="KV cache").first).to_contain_text("The server")

    expect(candidates.get_by_role("button", name="other settings")).to_be_disabled()
    expect(candidates).to_contain_text("stages, other settings, any text: they need the logits")
    candidates.get_by_role("button", name="slide temperature").click()
    expect(candidates).to_contain_text("does not tell its draw, so there is none to hold")

    candidates.get_by_role("button", name=re.compile("^Branch here with")).nth(1).press("Enter")
    branches = page.get_by_role("region", name="Branches").first
    expect(branches.get_by_role("listitem")).to_have_count(2, timeout=30_000)
    expect(branches.get_by_role("button").nth(1)).to_have_attribute("aria-current", "true", timeout=30_000)
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_disabled(timeout=60_000)

    page.get_by_role("tab", name="Compare").click()
    page.get_by_role("button", name="Copy as command").click()
    copied = page.locator("#copy-text textarea")
    expect(copied).to_have_value(re.compile(re.escape(f"--server {server} -- ")), timeout=20_000)
    assert "remote:" not in copied.input_value()
    page.get_by_role("button", name="Generate all", exact=True).click()
    lanes = page.locator("#stage-compare .ft-lane")
    expect(lanes).to_have_count(4, timeout=20_000)
    expect(page.locator("#stage-compare")).to_contain_text("All 4 runs have ended.", timeout=60_000)
    expect(page.locator("#stage-compare")).to_contain_text("the server drew")

    stored = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, location.href])")
    assert KEY not in stored + page.content()

    page.get_by_role("tab", name="Connect").click()
    page.locator("#language").click()
    expect(report.locator(".connect-found")).to_have_text(re.compile("已连接"))
    page.locator("#language").click()
    expect(report.locator(".connect-found")).to_have_text(re.compile("Connected"))
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

    page.get_by_role("button", name="Back to this machine").click()
    expect(report).to_contain_text("model of this machine again")
    expect(page.locator("#model input")).not_to_have_value(re.compile("SmolLM2"))
    assert watched.complaints == [] and watched.foreign == []


def test_a_page_that_others_reach_connects_nowhere(
    open_page: Any, serving: Any, recorded_folder: Any
) -> None:
    public = serving(lambda name, report: None, (), recorded_folder, policy=Policy(open=False))
    report = ask(open_page(public.url), "127.0.0.1:9", "")
    expect(report.get_by_role("alert")).to_contain_text("does not connect to that address")
