"""The tour in a browser: nine chapters in two languages, every number against the record, right and wrong answers."""

import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from playwright.sync_api import expect

from playground import catalog
from playground.core.codec import decode
from playground.core.draws import uniform
from playground.core.kv import cache_spec
from playground.core.lesson import run_facts
from playground.core.metrics import mean_surprisal_bits, surprisal_bits
from playground.core.race import work
from playground.core.run import Run, fold
from playground.core.trace import load_trace
from playground.core.units import bytes_text, seconds_text
from playground.ui.text import sections

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).parents[2] / "assets" / "traces" / "learn"
LLAMA = catalog.config("llama-3.1-8b")
H100 = catalog.accelerator("h100-sxm")
CHAPTERS = range(1, 10)


def recorded(name: str) -> Run:
    return load_trace(FOLDER / f"{name}.jsonl").runs[0]


def counted(n: float) -> str:
    return f"{n:,}"


def exact(n: float) -> str:
    return f"{n:,} B"


def facts_of(run: Run) -> dict[str, tuple[Any, Callable[[Any], str]]]:
    """Every number that the text of the chapters names, found anew in the record, and how it is written."""
    steps, prefilled, prompt = run.lanes[0].steps, run.prefilled, len(run.started.prompt)
    gap = median(b.end_seconds - a.end_seconds for a, b in pairwise(steps))
    model, last = run.started.model, steps[-1]
    read = model.weights_bytes + last.kv_used_bytes
    spec, cached, uncached = cache_spec(LLAMA.shape), work(1, 1000, cached=True), work(1, 1000, cached=False)
    weights = 2 * LLAMA.parameters
    pieces = {r.started.request.prompt: r.started.prompt for r in load_trace(FOLDER / "pieces.jsonl").runs}

    def ids(text: str) -> str:
        return " + ".join(f"{token.id:,}" for token in pieces[text])

    return {
        "vocabulary": (model.vocabulary, counted), "prompt_tokens": (prompt, counted),
        "prompt_more": (prompt + 1, counted), "last_read": (prompt + len(steps) - 1, counted),
        "new_tokens": (len(steps), counted), "id_bare": (ids("gravity"), str), "id_spaced": (ids(" gravity"), str),
        "prefill_time": (prefilled.end_seconds - prefilled.start_seconds, seconds_text),
        "decode_passes": (len(steps) - 1, counted), "gap": (gap, seconds_text),
        "pairs_50": (50 * 51 // 2, counted), "pairs_32000": (32_000 * 32_001 // 2, counted),
        "read": (read, bytes_text), "read_rate": (read / gap, None),
        "first": (steps[0].end_seconds, seconds_text), "total": (last.end_seconds, seconds_text),
        "example_forwards": (500, counted), "ceiling_model": (LLAMA.title, str), "ceiling_device": (H100.title, str),
        "ceiling_reading": ((weights + spec.bytes_per_token) / H100.bytes_per_second, seconds_text),
        "ceiling_computing": (2 * LLAMA.parameters / H100.matrix_flops, None),
        "kv_with": (cached.kv_computed, counted), "kv_without": (uncached.kv_computed, counted),
        "dots_with": (cached.attention_dot_products_computed, counted),
        "cache_model": (LLAMA.title, str), "layers": (32, counted), "heads": (8, counted),
        "query_heads": (32, counted), "dim": (128, counted), "size": (2, counted),
        "key_bytes": (256, exact), "head_bytes": (512, exact), "layer_bytes": (4096, exact),
        "token_bytes": (131_072, exact), "cache_4096": (2**29, bytes_text),
        "cache_128000": (131_072 * 128_000, bytes_text), "cache_32": (2**34, bytes_text),
        "cache_weights": (weights, bytes_text),
    }  # fmt: skip


def check_text(page: Any, expected: dict[str, tuple[Any, Any]]) -> set[str]:
    """Every number in the open chapter's text is the record's, and written as the program writes it."""
    shown = page.locator(".ln-text .ln-fact").evaluate_all(
        "nodes => nodes.map((n) => [n.dataset.fact, n.dataset.value, n.textContent])"
    )
    for name, value, text in shown:
        number, write = expected[name]
        if isinstance(number, str):
            assert (value, text) == (number, number)
        else:
            assert float(value) == pytest.approx(number, rel=1e-12), name
            assert write is None or text == write(number), name
    return {name for name, _, _ in shown}


def open_learn(page: Any) -> None:
    page.get_by_role("tab", name="Learn").click()
    page.wait_for_function("window.firstTokenLearn?.material.ready")


def chapter(page: Any, n: int) -> Any:
    page.locator(".ln-link").nth(n - 1).click()
    return page.locator(".ln-chapter")


def candidates_of(step: Any) -> dict[str, tuple[float, float]]:
    return {str(c.token.id): (math.exp(c.raw_logprob), c.processed_probability) for c in step.candidates}


def check_rows(rows: Any, step: Any) -> None:
    known = candidates_of(step)
    shown = rows.locator(".ft-row[data-id]:not([hidden])").evaluate_all(
        "nodes => nodes.map((n) => [n.dataset.id, +n.dataset.raw, +n.dataset.processed])"
    )
    assert shown
    for id, raw, processed in shown:
        assert (raw, processed) == pytest.approx(known[id])


def check_tokens(page: Any, run: Run) -> None:
    panel = chapter(page, 1)
    ids = panel.locator(".ln-big-tokens .ft-token").evaluate_all("nodes => nodes.map((n) => +n.dataset.id)")
    assert ids == run.prompt_ids
    pieces = panel.locator(".ln-piece").evaluate_all("nodes => nodes.map((n) => n.dataset.tokens)")
    assert pieces == [" ".join(map(str, r.prompt_ids)) for r in load_trace(FOLDER / "pieces.jsonl").runs]


def check_softmax(page: Any, several: Run) -> None:
    panel = chapter(page, 2)
    for lane in several.lanes:
        panel.get_by_role("radio", name=f"{lane.decoding.temperature:g}", exact=True).check()
        step = lane.steps[0]
        known = {str(c.token.id): c for c in step.candidates}
        rows = panel.locator(".ln-softmax tr[data-id]").evaluate_all(
            "nodes => nodes.map((n) => ({...n.dataset}))"
        )
        assert len(rows) == 6
        for row in rows:
            candidate = known[row["id"]]
            assert float(row["logit"]) == pytest.approx(candidate.raw_logprob + step.logsumexp)
            assert float(row["probability"]) == pytest.approx(candidate.processed_probability)
            if not lane.decoding.greedy:
                assert float(row["scaled"]) == pytest.approx(float(row["logit"]) / lane.decoding.temperature)


def check_loop(page: Any, run: Run, score: dict[str, Any], words: dict[str, Any]) -> None:
    panel = chapter(page, 3)
    for _ in range(2):
        panel.get_by_role("button", name=words["draw"]).click()
    at = int(panel.locator("[data-step]").get_attribute("data-step"))
    step = run.lanes[0].steps[at - 1]
    check_rows(panel.locator(".ln-evidence"), step)
    assert (
        f"{uniform(run.lanes[0].decoding.seed, step.step):.3f}"
        in panel.locator(".ft-needle-value").inner_text()
    )
    visible = panel.locator(".ln-running .ft-token:not(.ln-later)").evaluate_all(
        "nodes => nodes.map((n) => +n.dataset.id)"
    )
    assert visible == [*run.prompt_ids, *run.lanes[0].token_ids[:at]]
    panel.get_by_role("radio", name=words["training"]).check()
    bits = panel.locator(".ln-place").evaluate_all("nodes => nodes.map((n) => n.dataset.bits)")
    assert [None if b == "null" else float(b) for b in bits] == [t["surprisal_bits"] for t in score["tokens"]]


def check_mask(page: Any, run: Run) -> None:
    panel = chapter(page, 4)
    slider = panel.get_by_role("slider")
    slider.fill("1")
    prompt = len(run.prompt_ids)
    expect(panel.locator(".ln-finding")).to_contain_text(f"{prompt * (prompt + 1) // 2}")
    slider.fill("5")
    step = run.lanes[0].steps[4]
    expect(panel.locator(".ln-finding")).to_contain_text(seconds_text(step.end_seconds - step.start_seconds))
    expect(panel.locator(".ln-finding")).to_contain_text(str(prompt + 4))


def check_stream(page: Any, run: Run) -> None:
    panel = chapter(page, 5)
    steps = run.lanes[0].steps
    firsts = panel.locator(".ln-box").evaluate_all("nodes => nodes.map((n) => +n.dataset.first)")
    assert firsts == [steps[0].end_seconds, steps[-1].end_seconds]
    panel.get_by_role("radio", name="100").check()
    firsts = panel.locator(".ln-box").evaluate_all("nodes => nodes.map((n) => +n.dataset.first)")
    assert firsts == pytest.approx([steps[0].end_seconds, steps[0].end_seconds + (len(steps) - 1) / 100])


def check_saving(page: Any, run: Run) -> None:
    panel = chapter(page, 6)
    panel.get_by_role("slider").fill("16")
    n = int(panel.locator("[data-n]").get_attribute("data-n"))
    values = panel.locator(".ln-count").evaluate_all("nodes => nodes.map((n) => +n.dataset.value)")
    with_it, without = work(1, n, cached=True), work(1, n, cached=False)
    assert values == [
        with_it.kv_computed, without.kv_computed,
        with_it.attention_dot_products_computed, without.attention_dot_products_computed,
    ]  # fmt: skip
    own = work(len(run.prompt_ids), len(run.lanes[0].steps), cached=False).kv_computed
    assert panel.locator("[data-without]").get_attribute("data-without") == str(own)


def check_weight(page: Any) -> None:
    panel = chapter(page, 7)
    for heads in (8, 32, 1):
        panel.locator(f"input[value='{heads}']").first.check()
        panel.locator("input[value='128000']").check()
        panel.locator(".ln-segments").nth(2).locator("input[value='32']").check()
        sizes = panel.locator(".ln-stair").evaluate_all("nodes => nodes.map((n) => +n.dataset.bytes)")
        token = 512 * heads * 32
        assert sizes == [2, 256, 512, 512 * heads, token, token * 128_000, token * 128_000 * 32]


def check_choosing(page: Any) -> None:
    panel = chapter(page, 8)
    for name, place in (("factual", 0), ("creative", 1)):
        panel.locator(".ln-segments").first.locator("input").nth(place).check()
        run = recorded(name)
        for box in panel.locator(".ln-box").all():
            lane = next(one for one in run.lanes if one.decoding.name == box.get_attribute("data-lane"))
            ids = box.locator(".ln-answer .ft-token").evaluate_all("nodes => nodes.map((n) => +n.dataset.id)")
            assert ids == lane.token_ids
            assert float(box.locator("[data-bits]").get_attribute("data-bits")) == mean_surprisal_bits(lane)
            at = int(box.locator(".ft-token[aria-current]").get_attribute("data-i"))
            check_rows(box, lane.steps[at])


def check_advice(page: Any) -> None:
    panel = chapter(page, 9)
    panel.locator(".ln-segments input").nth(2).check()
    expect(panel.locator(".ln-settings")).to_have_text("T 0.7, top-p 0.9")
    knobs = panel.locator(".ln-knob b").all_inner_texts()
    assert (knobs[0], knobs[2], knobs[1] == knobs[3]) == ("0.7", "0.9", True)


def answer(page: Any, words: dict[str, Any]) -> tuple[bool, bool]:
    """Answer the open chapter's question wrong and right; whether each was said."""
    question = page.locator(".ln-question")
    field = question.locator(".ln-number")
    if field.count():
        field.fill("23,040")
        field.press("Enter")
        wrong = question.locator(".ln-verdict").inner_text()
        field.fill("46,080")
        question.get_by_role("button", name=words["check"]).click()
        return wrong.startswith(words["wrong"]), question.locator(".ln-verdict").inner_text().startswith(
            words["right"]
        )
    seen = set()
    for option in question.locator(".ln-option").all():
        option.click()
        seen.add(question.locator(".ln-verdict b").inner_text())
        assert len(question.locator(".ln-verdict").inner_text()) > 40
    return words["wrong"] in seen, words["right"] in seen


def explained(run: Run, several: Run) -> dict[int, str]:
    """A number of the record that the explanation of each chapter's answer has to name."""
    warmest = next(lane for lane in several.lanes if lane.decoding.temperature == 2)
    pieces = {r.started.request.prompt: r.prompt_ids for r in load_trace(FOLDER / "pieces.jsonl").runs}
    guessed = run.lanes[0].steps[run_facts(run)["guess"]["step"]]
    best = max(warmest.steps[0].candidates, key=lambda candidate: candidate.raw_logprob)
    return {
        1: str(len(pieces["😊"])), 2: f"{100 * best.processed_probability:.3g}",
        3: f"{surprisal_bits(guessed):.1f}", 4: "499", 5: f"{H100.bytes_per_second / (2 * LLAMA.parameters):.0f}",
        6: "500,500", 7: "46,080", 8: str(len(recorded("mystery").lanes[0].steps)), 9: "0.7",
    }  # fmt: skip


def test_nine_chapters_in_two_languages_tell_the_record(open_page: Any, replaying: Any) -> None:
    """The backend of this page cannot be asked for scores, so the tour is told with the recorded run."""
    page = open_page(replaying.url)
    open_learn(page)
    run, several = recorded("main"), recorded("temperatures")
    score = json.loads((FOLDER / "score.json").read_text("utf-8"))
    expected, why = facts_of(run), explained(run, several)
    for language in ("en", "zh"):
        words: Any = sections(language)["learn"]
        expect(page.locator(".ln-name")).to_have_text(words["name"])
        told: set[str] = set()
        for n in CHAPTERS:
            chapter(page, n)
            expect(page.locator(".ln-title")).to_contain_text(words[f"c{n}"]["title"])
            told |= check_text(page, expected)
            assert answer(page, words) == (True, True), n
            expect(page.locator(".ln-verdict")).to_contain_text(why[n])
        assert told == set(expected)
        expect(page.locator(".ln-nav-foot")).to_contain_text("9")
        check_tokens(page, run)
        expect(page.locator(".ln-source")).to_have_text(
            words["run"]["recorded"].format(
                prompt="What is gravity?", model=run.started.model.name, dtype="float32"
            )
        )
        check_softmax(page, several)
        check_loop(page, run, score, words["c3"])
        check_mask(page, run)
        check_stream(page, run)
        check_saving(page, run)
        check_weight(page)
        check_choosing(page)
        check_advice(page)
        page.locator("#language").click()


OVERTAKEN = """async () => {
  const { Material } = await import('/first-token/learn/material.js');
  const material = new Material(), told = [];
  const take = (run, first) => {
    material.accept({ run, first, events: [{ event: "later", run }] });
    told.push(material.live.id + material.events.length);
  };
  take("a", 0); take("a", 1); take("b", 0); take("a", 2); take("b", 1); take("a", 0);
  return told;
}"""


def test_keys_progress_teaching_and_a_phone(open_page: Any, replaying: Any, reload: Any) -> None:
    page = open_page(replaying.url, viewport={"width": 390, "height": 844}, reduced_motion="reduce")
    open_learn(page)
    for n in CHAPTERS:
        chapter(page, n)
        wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1], n
    page.set_viewport_size({"width": 1280, "height": 900})
    chapter(page, 1)
    page.get_by_role("button", name="Teacher's mode").press("Enter")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".ln-title")).to_contain_text("Scores become chances")
    page.keyboard.press("r")
    expect(page.locator(".ln-verdict")).to_contain_text("The answer: T = 2")
    size = page.locator(".ln-p").first.evaluate("node => parseFloat(getComputedStyle(node).fontSize)")
    assert size > 20
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Draw the next token").press("Enter")
    assert page.locator("[data-step]").get_attribute("data-step") == "4"
    chapter(page, 4)
    page.get_by_role("slider").press("ArrowLeft")  # moves the slider, not the page
    assert page.locator("[data-pass]").get_attribute("data-pass") == "2"
    page.locator(".ln-option", has_text="500").first.press("Enter")
    reload(page)
    open_learn(page)
    expect(page.locator(".ln-title")).to_contain_text("Two phases")
    expect(page.locator(".ln-nav-foot")).to_contain_text("1 of 9")
    page.get_by_role("button", name="Open this run in the Playground").click()
    expect(page.locator(".ft-answer")).to_contain_text(recorded("main").lanes[0].text.strip()[:20])
    page.get_by_role("button", name="Generate", exact=True).click()
    page.get_by_role("tab", name="Learn").click()
    expect(page.locator(".ln-source")).to_contain_text("Your run", timeout=20_000)
    check_mask(page, fold(decode(event) for event in page.evaluate("firstTokenLearn.material.main.events")))
    # two streams beside each other: the younger run is told, the elder one only where it begins anew
    assert page.evaluate(OVERTAKEN) == ["a1", "a2", "b1", "b1", "b2", "a1"]


@pytest.mark.model
def test_the_readers_own_run_is_told(open_page: Any, on_model: Any) -> None:
    page = open_page(on_model.url)
    page.wait_for_function("document.querySelector('#device-chip .chip').textContent.includes('fp32')")
    open_learn(page)
    page.wait_for_function("firstTokenLearn.material.score?.own", timeout=60_000)
    expect(page.locator(".ln-source")).to_contain_text("Your run")
    page.get_by_role("textbox", name="Your own words").fill("The sky is blue because")
    page.get_by_role("button", name="Run it here").click()
    page.wait_for_function(
        "firstTokenLearn.material.main.run.started.request.prompt === 'The sky is blue because'"
        " && firstTokenLearn.material.score.own",
        timeout=60_000,
    )
    run = fold(decode(event) for event in page.evaluate("firstTokenLearn.material.main.events"))
    expected = facts_of(run)
    for n in CHAPTERS:
        chapter(page, n)
        check_text(page, expected)
    check_tokens(page, run)
    check_mask(page, run)
    check_stream(page, run)
    panel = chapter(page, 2)
    first = panel.locator(".ln-softmax tr[data-id]").first
    candidates = candidates_of(run.lanes[0].steps[0])
    shown = float(first.get_attribute("data-probability"))
    assert shown == pytest.approx(candidates[first.get_attribute("data-id")][1], rel=1e-6)
