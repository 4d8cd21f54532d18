"""The inspector on made events: the timeline's prompt and words, the panels, and what a moving cursor costs."""

import math
import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import expect

from playground.core.decoding import Decoding
from playground.core.events import Event, PromptRead, Read, StageRecord
from playground.core.tokens import Candidate, Expected
from playground.core.trace import load_trace
from playground.settings import assets_dir
from tests.browser.stage_events import (
    NASTY,
    finished,
    packet,
    piece,
    prefilled,
    send,
    started,
    step,
    token,
    whole_run,
)

pytestmark = pytest.mark.browser

SLIDER = "Cursor over the tokens"


def read(logprob: float | None = -1.0, *expected: Expected) -> Read:
    best = expected or (Expected(token(" the", 40), -0.5), Expected(token(NASTY, 41), -1.2))
    return Read(3, logprob, 2.0, best)


def prompt_read() -> PromptRead:
    return PromptRead("r", (Read(), read(-0.1), read(-6.0), read(None)), 0.1)


def candidates(page: Any) -> Any:
    return page.get_by_role("region", name="Candidates")


def test_prompt_and_answer_are_one_line_for_the_arrow_keys(stage: Any) -> None:
    page = stage()
    events = [*whole_run([" a"] * 6), prompt_read()]
    send(page, packet(events))
    slider = page.get_by_role("slider", name=SLIDER)
    slider.press("Home")
    for _ in range(2):
        slider.press("ArrowLeft")
    card = candidates(page)
    assert card.get_by_role("heading", name="Token 3 of the prompt").is_visible()
    assert "0.248 %" in card.inner_text() and "surprisal 8.7 bits" in card.inner_text()
    rows = card.get_by_role("listitem").all()
    assert [row.get_attribute("aria-label") for row in rows][
        -1
    ] == "␣gravity, model 0.248 %, what stands there"
    assert NASTY in rows[1].inner_text() and page.locator("#root :is(img, script)").count() == 0
    assert slider.get_attribute("aria-valuenow") == "-1" and slider.get_attribute("aria-valuemin") == "-3"
    assert "gravity" in slider.get_attribute("aria-valuetext")
    assert page.locator(".ft-word-here").text_content() == "gravity"
    assert "4 prompt tokens and 0 of the answer" in page.get_by_role("region", name="KV cache").inner_text()
    for _ in range(9):
        slider.press("ArrowLeft")
    assert "nothing comes before it" in card.inner_text()
    for _ in range(4):
        slider.press("ArrowRight")
    assert card.get_by_role("heading", name="Token 1 of the answer").is_visible()
    assert page.evaluate("sent") == []


def test_the_prompts_own_chips_lead_to_its_tokens_and_carry_their_surprisal(stage: Any) -> None:
    page = stage()
    send(page, packet([*whole_run([" a"] * 6), prompt_read()]))
    page.get_by_role("button", name="show", exact=True).click()
    chips = page.locator(".ft-prompt .ft-token")
    chips.nth(2).click()
    assert candidates(page).get_by_role("heading", name="Token 3 of the prompt").is_visible()
    assert chips.nth(2).get_attribute("aria-current") == "true"
    assert "ft-s4" in chips.nth(2).get_attribute("class") and "ft-s0" in chips.nth(1).get_attribute("class")


def test_the_prompt_is_asked_about_once_and_an_answer_may_be_a_sentence(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 6)))
    page.get_by_role("button", name="What did the model expect of the prompt?").click()
    page.wait_for_function("sent.length === 1")
    assert page.evaluate("sent") == [["ask", {"what": "prompt", "run": "r"}]]
    card = page.get_by_role("region", name="Timeline")
    assert "Reading the prompt once more" in card.inner_text()
    send(page, {"seq": 2, "answer": {"what": "prompt", "run": "r", "error": "No model is loaded."}})
    assert "No model is loaded." in card.inner_text()
    send(page, packet([prompt_read()], first=9, seq=3))
    assert "No model is loaded." not in card.inner_text()
    assert page.get_by_role("button", name="What did the model expect of the prompt?").count() == 0


def test_the_cursor_follows_a_pointer_into_the_prompt(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 40)))
    box = page.locator(".ft-timeline").bounding_box()
    page.mouse.move(box["x"] + 104, box["y"] + 200)
    page.mouse.down()
    assert candidates(page).get_by_role("heading", name="Token 1 of the prompt").is_visible()
    page.mouse.move(box["x"] + box["width"] - 12, box["y"] + 200)
    page.mouse.up()
    assert candidates(page).get_by_role("heading", name="Token 40 of the answer").is_visible()


def test_words_stand_where_there_is_room_and_never_over_each_other(stage: Any) -> None:
    page = stage()
    apart = """() => [...document.querySelectorAll('.ft-words text')].filter((t) => t.style.display !== 'none')
      .map((t) => t.getBoundingClientRect()).map((r) => [r.left, r.right]).sort((a, b) => a[0] - b[0])"""
    for words in ([" few", " words", "<b>x</b>"], [f" longer{i}" for i in range(300)]):
        send(page, packet(whole_run(words), seq=len(words)))
        found = page.evaluate(apart)
        assert len(found) >= min(len(words), 6)
        assert all(b[0] - a[1] > -1 for a, b in pairwise(found)), found


def test_the_held_draw_names_its_flips_and_goes_back(stage: Any) -> None:
    """probabilities .5 .3 .15, rest 5 %; at T 1 the draw .55 lands on the second."""
    page = stage()
    found = tuple(Candidate(token(f" w{i}", 10 + i), math.log(p), p) for i, p in enumerate((0.5, 0.3, 0.15)))
    lanes = (Decoding(temperature=1.0, top_p=1.0, seed=1),)
    at = step(0, found[1].token, raw=0.3, candidates=found, raw_rank=2, processed_probability=0.3, draw=0.55,
              kept_count=49_152, kept_mass=1.0, stages=(), raw_entropy_bits=1.65 + 0.05 * 12)  # fmt: skip
    send(page, packet([started(lanes=lanes), prefilled(), at, finished("x")]))
    card = candidates(page)
    card.get_by_role("button", name="slide temperature").press("Enter")
    panel = card.get_by_role("group", name="slide temperature")
    assert "As drawn, at T 1.00: 0.550 landed on ␣w1" in panel.inner_text()
    below = float(panel.inner_text().split("becomes ␣w0 below T ")[1].split("\n")[0].removeprefix("about "))
    # at T: .5^(1/T) / (.5^(1/T) + .3^(1/T) + .15^(1/T) + rest) = .55, with the rest bounded by .05^(1/T)
    reached = {
        T: 0.5 ** (1 / T) / sum(p ** (1 / T) for p in (0.5, 0.3, 0.15)) for T in (below - 0.02, below + 0.07)
    }
    assert reached[below - 0.02] > 0.55 > reached[below + 0.07] - 0.02
    slider = panel.get_by_role("slider", name="Temperature, with the draw held")
    slider.press("Home")
    assert "At T 0.00 the same draw 0.550 lands on ␣w0" in panel.inner_text()
    assert page.locator(".ft-slide .ft-part.ft-chosen:visible").inner_text() == "␣w0"
    panel.get_by_role("button", name="as drawn").click()
    assert "As drawn" in panel.inner_text()
    assert page.evaluate("sent") == []


def test_greedy_has_no_draw_to_hold_and_draws_one_token_only(stage: Any) -> None:
    page = stage()
    one = (
        Candidate(token(" a"), math.log(0.5), 1.0),
        Candidate(token(" b", 9), math.log(0.3), 0.0, "greedy"),
    )
    how: dict[str, Any] = {"draw": None, "origin": "argmax", "kept_count": 1, "candidates": one}
    send(page, packet([started(), prefilled(), step(0, token(" a"), processed_probability=1.0, **how)]))
    card = candidates(page)
    card.get_by_role("button", name="slide temperature").click()
    assert "no draw to hold" in card.inner_text()
    card.get_by_role("button", name="draw 200 times").click()
    assert "all 200 landed on ␣a" in card.inner_text()


def test_two_hundred_draws_stand_beside_what_they_should_be(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 3)))
    card = candidates(page)
    card.get_by_role("button", name="draw 200 times").click()
    panel = card.get_by_role("group", name="draw 200 times")
    counts = [int(row.get_attribute("data-count")) for row in panel.get_by_role("listitem").all()]
    assert sum(counts) == 200 and len(counts) == 2 and abs(counts[0] - 150) < 25
    assert panel.get_by_role("listitem").first.get_attribute("aria-label").endswith("expected 150")
    assert "Simulated" in panel.inner_text()
    before = panel.inner_text()
    panel.get_by_role("button", name="draw again").click()
    assert panel.inner_text() != before


def stages_run(**more: Any) -> list[Event]:
    records = (
        StageRecord("temperature", 49_152, 1.0),
        StageRecord("top_k", 40, 0.94),
        StageRecord("top_p", 2, 0.846),
    )
    lanes = (Decoding(temperature=0.7, top_k=40, top_p=0.9, seed=7),)
    return [
        started(lanes=lanes, **more),
        prefilled(),
        step(0, token(" a"), stages=records, kept_mass=0.846),
        finished(" a"),
    ]


def test_the_stages_are_a_waterfall_with_each_mass_relative_to_its_input(stage: Any) -> None:
    page = stage()
    send(page, packet(stages_run()))
    card = candidates(page)
    card.get_by_role("button", name="stages", exact=True).click()
    panel = card.get_by_role("group", name="stages")
    assert "top-k kept 94 %, top-p 90 % of that: 85 % in the end." in panel.inner_text()
    assert "kept 94 % of its input, 49,112 fell out" in panel.inner_text()
    assert NASTY in panel.inner_text() and "␣os" in panel.inner_text()  # fell out at top-p
    page.wait_for_function("sent.length === 1")
    question = {"what": "waterfall", "run": "r", "lane": 0, "step": 0}
    assert page.evaluate("sent") == [["ask", question]]
    told = [
        {"name": name, "inert": name == "top_k", "removed_count": 0}
        for name in ("temperature", "top_k", "top_p")
    ]
    send(
        page,
        {
            "seq": 5,
            "answer": question | {"waterfall": {"stages": told, "rows": []}, "computed": 1, "reused": 9},
        },
    )
    inert = [row.inner_text().split("\n")[0] for row in panel.locator(".ft-inert").all()]
    assert inert == ["top-k 40"] and "1 positions read, 9 reused" in panel.inner_text()


def test_a_moving_cursor_builds_nothing_and_asks_nobody(stage: Any) -> None:
    """A thousand tokens: what a move touches is bounded, with a panel open too; counted, not timed."""
    page = stage()
    send(page, packet([*whole_run([f" w{i}" for i in range(1000)]), prompt_read()]))
    candidates(page).get_by_role("button", name="slide temperature").click()
    changed = page.evaluate(
        """async () => {
          const slider = document.querySelector('.ft-timeline');
          slider.focus();
          const press = (key) => slider.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
          for (let i = 0; i < 30; i += 1) press('ArrowLeft');
          const nodes = document.querySelectorAll('#root *').length;
          let records = 0;
          const watch = new MutationObserver((all) => { records += all.length; });
          const all = { subtree: true, childList: true, attributes: true, characterData: true };
          watch.observe(document.getElementById('root'), all);
          for (let i = 0; i < 100; i += 1) {
            press(i % 40 < 20 ? 'ArrowLeft' : 'ArrowRight');
            await new Promise((done) => setTimeout(done));
          }
          watch.disconnect();
          return [records / 100, document.querySelectorAll('#root *').length - nodes];
        }"""
    )
    assert changed[0] < 250, "a move of the cursor touches the whole page"
    assert abs(changed[1]) < 80
    assert page.evaluate("sent") == []


def test_three_replays_leave_as_many_nodes_and_listeners_as_one(stage: Any) -> None:
    """Case 21, by the browser's own counters after a collection."""
    page = stage()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    found = []
    for run in ("a", "b", "c"):
        events = whole_run([f" w{i}" for i in range(600)])
        parts = [packet(events[i : i + 8], first=i, run=run, seq=i) for i in range(0, len(events), 8)]
        send(page, *parts)
        page.wait_for_function("firstTokenStage.counters.painted === 600")
        session.send("HeapProfiler.collectGarbage")
        metrics = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        found.append((metrics["Nodes"], metrics["JSEventListeners"], metrics["JSHeapUsedSize"]))
    assert found[2][0] <= found[0][0] * 1.05 and found[2][1] <= found[0][1]
    assert found[2][2] <= found[0][2] * 1.2, "the heap grows from run to run"
    assert page.evaluate("firstTokenStage.counters.gaps") == 0


def test_pieces_of_one_character_say_their_joint_probability(stage: Any) -> None:
    """Case 1: 0.5 x 0.25 x 1 for one emoji of three tokens."""
    page = stage()
    parts = [piece("f09f", 1), piece("98", 2), piece("8a", 3)]
    shares = [(0.5, 0.75), (0.25, 0.5), (1.0, 1.0)]
    steps = [
        step(i, one, "😊" if i == 2 else "", raw=raw, processed_probability=processed)
        for i, (one, (raw, processed)) in enumerate(zip(parts, shares, strict=True))
    ]
    send(page, packet([started(), prefilled(), *steps, finished("😊")]))
    page.get_by_role("region", name="Tokens").locator(".ft-piece").nth(1).click()
    said = candidates(page).inner_text()
    assert "😊 is made of 3 tokens" in said and "12.5 %" in said and "37.5 %" in said


def test_a_file_without_a_server_says_what_takes_the_model(stage: Any) -> None:
    page = stage("quiet&alone")
    send(page, packet(stages_run()))
    candidates(page).get_by_role("button", name="stages", exact=True).click()
    assert "which a file does not have" in candidates(page).inner_text()
    assert "85 % in the end" in candidates(page).inner_text()
    assert page.get_by_role("button", name="What did the model expect of the prompt?").count() == 0
    assert (
        "The record does not say what the model expected"
        in page.get_by_role("region", name="Timeline").inner_text()
    )


def test_panels_fit_a_phone_in_both_languages(stage: Any) -> None:
    for language, name in (("en", "Candidates"), ("zh", "候选")):
        page = stage(f"quiet&lang={language}", 390, 844)
        rare = replace(step(1, token(" " + "long" * 12, 7), raw=3e-6), processed_probability=4.2e-7)
        send(page, packet([started(), prefilled(), step(0, token("A")), rare]))
        expect(page.get_by_role("region", name=name)).to_be_visible()
        for button in page.locator(".ft-tool-line button").all()[:3]:
            button.click()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            assert button.evaluate("node => node.offsetHeight") >= 40


def test_candidates_are_told_apart_by_what_cannot_be_seen(stage: Any) -> None:
    """Cases 2, 5, 10 and 11: spaces, special and control tokens, quotes; those of the step under the cursor."""
    page = stage()
    found = tuple(
        Candidate(one, math.log(0.3 / (i + 1)), 0.3 / (i + 1))
        for i, one in enumerate(
            (
                token(" os", 20),
                token("os", 21),
                token("<|end|>", 22, special=True),
                token("\x07", 23),
                token('"', 24),
            )
        )
    )
    rare = Candidate(token(" rare", 99), math.log(0.004), 0.004)
    steps = [step(i, token(f" w{i}", 100 + i)) for i in range(6)]
    steps.append(step(6, rare.token, raw=0.004, raw_rank=31, candidates=(*found, rare), draw=0.93,
                      processed_probability=0.004, kept_count=400))  # fmt: skip
    send(page, packet([started(), prefilled(), *steps, finished("x")]))
    page.get_by_role("region", name="Tokens").locator(".ft-token").nth(6).click()
    rows = page.locator(".ft-rows [data-id]:visible")
    assert rows.locator(".ft-name").all_inner_texts() == ["␣os", "os", "<|end|>", "\\x07", '"', "␣rare"]
    assert [row.get_attribute("data-id") for row in rows.all()] == ["20", "21", "22", "23", "24", "99"]
    assert rows.nth(2).get_attribute("title") == "special token"
    assert rows.nth(2).locator(".ft-pill").count() == 1 and rows.nth(4).locator(".ft-pill").count() == 0
    last = rows.last
    assert last.get_attribute("aria-label").endswith("chosen") and "31" in last.inner_text()
    # its place beyond the record is unknown: its slice is shown where the draw fell
    inside = page.evaluate(
        """() => {
          const of = (s) => document.querySelector(s).getBoundingClientRect();
          const [part, needle] = [of('.ft-strip .ft-chosen'), of('.ft-needle')];
          return part.left - 2 <= needle.left && needle.right <= part.right + 2;
        }"""
    )
    assert inside


LOOPS = [
    ([], []),
    ([1] * 11, []),
    ([1] * 12, [(0, 1, 12)]),
    ([9, *[1, 2, 3, 4] * 3, 5], [(1, 4, 12)]),
    ([9, *[1, 2, 3, 4] * 2, 1, 2, 3, 5], []),
    ([*range(30), *range(30), *range(30)], [(0, 30, 90)]),
    ([*[1, 2] * 6, 7, 8, *[3, 4, 5, 6] * 4], [(0, 2, 12), (14, 4, 16)]),
    (list(range(200)), []),
    ([*range(65)] * 3, []),
]


def test_a_loop_is_the_same_tokens_three_times_in_a_row_and_twelve_long(stage: Any) -> None:
    page = stage()
    draws = random.Random(4)
    texts = [ids for ids, _ in LOOPS] + [[draws.randrange(3) for _ in range(40)] for _ in range(200)]
    found = page.evaluate(
        "async (texts) => { const { loopsOf } = await import('/assets/stage/loops.js'); return texts.map(loopsOf); }",
        texts,
    )
    told = [[(o["first"], o["period"], o["length"]) for o in one] for one in found]
    assert told[: len(LOOPS)] == [expected for _, expected in LOOPS]
    for ids, loops in zip(texts, told, strict=True):
        for first, period, length in loops:
            repeated = ids[first : first + length]
            assert repeated[period:] == repeated[:-period] and length >= 3 * period
        assert all(a[0] + a[2] <= b[0] for a, b in pairwise(loops))


def test_the_shipped_trace_goes_round_and_its_entropy_falls(stage: Any) -> None:
    page = stage()
    lane = load_trace(assets_dir() / "traces" / "loop.jsonl").runs[0].lanes[0]
    steps = [{"raw_entropy_bits": step.raw_entropy_bits} for step in lane.steps]
    (loop,), falls = page.evaluate(
        """async ([ids, steps]) => {
          const { collapse, loopsOf } = await import('/assets/stage/loops.js');
          const found = loopsOf(ids);
          return [found, collapse(steps, found[0])];
        }""",
        [lane.token_ids, steps],
    )
    assert loop["period"] == 8 and loop["first"] < 20 and loop["length"] > 40
    assert falls["within"] < falls["before"]
