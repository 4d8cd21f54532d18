"""Prove it: every number of a step opens its formula, and its code, run as it stands, gives the number again."""

import contextlib
import io
import math
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.core.trace import load_trace
from playground.engine import sources
from playground.settings import assets_dir
from playground.views.packets import recorded_packet

pytestmark = [pytest.mark.browser, pytest.mark.model]

MEASURED = ("decode rate", "first token")
TOLERANCE = 2e-3
"""Recorded in float32 with another number of threads."""


def opened(page: Any, name: str) -> Any:
    dialog = page.get_by_role("dialog")
    if not dialog.is_visible():
        page.get_by_role("button", name="prove it", exact=True).click()
    dialog.get_by_role("button", name=name, exact=True).click()
    return dialog


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], float]:
    """Runs a snippet; the folder stands for the name of the converted default model, read once."""
    import transformers

    folder = sources.find(None, offline=True).folder
    read = transformers.AutoModelForCausalLM.from_pretrained
    kept: list[Any] = []

    def from_pretrained(name: str, **options: Any) -> Any:
        assert name == "SmolLM2-135M-Instruct"
        kept.extend([] if kept else [read(str(folder), **options)])
        return kept[0]

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", from_pretrained)

    def run(code: str) -> float:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "snippet.py", "exec"), {})
        return float(printed.getvalue().split()[-1])

    return run


def test_the_code_of_every_number_gives_it_again(
    on_model: Any, open_page: Callable[..., Any], ran: Callable[[str], float]
) -> None:
    page = open_page(on_model.url)
    run = load_trace(assets_dir() / "traces" / "playground.jsonl").runs[0]
    page.evaluate("packet => firstTokenStage.packet(packet)", recorded_packet(run.events))
    cursor = int(page.locator(".ft-token[aria-current]").first.get_attribute("data-i"))
    step = run.lanes[0].steps[cursor]
    numbers = {
        "model": math.exp(step.raw_logprob),
        "after settings": step.processed_probability,
        "surprisal": -step.raw_logprob / math.log(2),
        "entropy": step.raw_entropy_bits,
        "kept mass": step.kept_mass,
        "KV cache": step.kv_used_bytes,
    }
    for name, recorded in numbers.items():
        code = opened(page, name).get_by_role("region", name="Python code").inner_text()
        assert ran(code) == pytest.approx(recorded, rel=TOLERANCE), name
    for name in MEASURED:
        dialog = opened(page, name)
        expect(dialog).to_contain_text("measured")
        assert 0 < ran(dialog.get_by_role("region", name="Python code").inner_text()) < 1e5


def test_the_formula_ends_in_the_number_of_the_card(on_model: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(on_model.url, permissions=["clipboard-read", "clipboard-write"])
    page.keyboard.press("Escape")  # the tour
    card = page.get_by_role("region", name="Candidates")
    for name, figure in (
        ("after settings", card.locator(".ft-big .ft-provable")),
        ("model", card.locator(".ft-why .ft-provable").first),
    ):
        said = figure.inner_text()
        figure.click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("button", name=name, exact=True)).to_have_attribute("aria-pressed", "true")
        assert dialog.locator(".ft-formula > p").last.inner_text() == f"= {said}"
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(figure).to_be_focused()
    dialog = opened(page, "KV cache")
    assert (
        dialog.locator(".ft-formula > p")
        .last.inner_text()
        .endswith(page.locator(".ft-card-memory .ft-big").inner_text())
    )
    dialog.get_by_role("button", name="Copy", exact=True).click()
    expect(dialog.get_by_role("status")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()").startswith("import torch")


def test_text_of_a_token_cannot_become_code(
    on_model: Any, open_page: Callable[..., Any], ran: Callable[[str], float]
) -> None:
    page = open_page(on_model.url)
    run = load_trace(assets_dir() / "traces" / "playground.jsonl").runs[0]
    packet = recorded_packet(run.events)
    hostile = '"\nimport os; os.abort()\u2028#\r"""'
    packet["run"] = "hostile"
    for event in packet["events"]:
        event["run"] = "hostile"
        if event["event"] == "stepped":
            event["token"][1] = hostile
    page.evaluate("packet => firstTokenStage.packet(packet)", packet)
    code = opened(page, "model").get_by_role("region", name="Python code").text_content()
    assert "os.abort" in code
    assert [line for line in code.splitlines() if line.startswith("import")] == ["import torch"]
    assert 0 < ran(code) < 1
