"""Spaces in a browser: on a CPU, and on ZeroGPU with its worker processes stood in for."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.spaces.conftest import STAND_IN, Space

pytestmark = [pytest.mark.browser, pytest.mark.model, pytest.mark.slow]

STEPS = "firstTokenStage.counters.steps"
SPACE = {"SPACE_ID": "someone/first-token", "SPACE_HOST": "someone-first-token.hf.space", "SYSTEM": "spaces"}
ZERO = SPACE | {
    "SPACES_ZERO_GPU": "true", "PYTHONPATH": str(STAND_IN),
    "STAND_IN_NEEDS_REQUEST": "1", "STAND_IN_SECONDS_LEFT": "14",
}  # fmt: skip


def run(page: Page, tokens: int, press: str = "Generate") -> None:
    page.get_by_role("textbox", name="Prompt", exact=True).fill("What is gravity? Answer in two sentences.")
    page.get_by_role("textbox", name="Seed").fill("5")
    page.get_by_role("spinbutton", name="At most").fill(str(tokens))
    page.get_by_role("button", name=press, exact=True).click()


def ready(page: Page) -> None:
    page.wait_for_function(
        "document.querySelector('#device-chip .chip').textContent.includes('fp32')", timeout=90_000
    )


def ended(page: Page, tokens: int) -> None:
    page.wait_for_function(f"{STEPS} === {tokens}", timeout=90_000)
    expect(page.get_by_role("button", name="Pause", exact=True)).to_be_disabled(timeout=30_000)


def test_a_space_with_a_cpu_answers(open_page: Any, assembled: Path, start: Callable[..., Space]) -> None:
    space = start(assembled, "app.py", **SPACE)
    page = open_page(space.url)
    assert page.evaluate(STEPS) > 0, "a recorded run is seen at once"
    ready(page)
    run(page, 12)
    page.wait_for_function("sessionStorage.getItem('first-token.run.run')", timeout=30_000)
    ended(page, 12)
    tokens = page.get_by_role("region", name="Tokens").locator(".ft-answer .ft-token[data-i]")
    assert len("".join(tokens.all_text_contents()).strip()) > 12
    assert "/playground/" not in space.log.read_text(), "an error went through our code"
    page.close()  # a page that loses its server complains
    space.stop()
    assert not space.machines_asked


def test_zerogpu_reveals_what_a_worker_has_made_and_refuses_in_a_sentence(
    open_page: Any, assembled: Path, start: Callable[..., Space]
) -> None:
    space = start(assembled, "app.py", **ZERO)
    page = open_page(space.url)
    ready(page)
    run(page, 12, "Step")
    for wanted in (1, 2, 3):  # revealed one by one, while the worker has long made all
        page.wait_for_function(f"{STEPS} === {wanted}", timeout=60_000)
        expect(page.locator(".ft-transport-said")).to_contain_text("Paused")
        page.get_by_role("button", name="Step", exact=True).click()
    page.get_by_role("button", name="Play", exact=True).click()
    ended(page, 12)
    assert space.log.read_text().count("stand-in: a worker began") == 1

    run(page, 200)
    expect(page.get_by_text("comes back in 5:43:21")).to_be_visible(timeout=30_000)
    assert space.log.read_text().count("stand-in: a worker began") == 1, "a refused run takes no worker"
    page.get_by_role("tab", name="Traces").click()
    recorded = page.locator(".tr-group").nth(1)
    recorded.get_by_role("button", name=re.compile("^Open: ")).first.click()
    page.wait_for_function(f"{STEPS} > 12", timeout=30_000)
    assert "/playground/" not in space.log.read_text(), "an error went through our code"
    page.close()  # a page that loses its server complains
    space.stop()
    assert not space.machines_asked
