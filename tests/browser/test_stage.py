"""The stage alone, fed with synthetic packets in a real browser: no gradio, no model."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from playground.core.decoding import GREEDY, Decoding
from playground.core.events import Event, Failed, Note, Prefilling
from playground.core.request import Reason
from playground.core.tokens import Candidate
from tests.browser.stage_events import (
    EACH,
    FACTS,
    NASTY,
    ROOT,
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


def tokens(page: Any) -> Any:
    return page.get_by_role("region", name="Tokens").locator(".ft-answer .ft-token")


def copied(page: Any, selector: str = ".ft-answer") -> str:
    select = "s => getSelection().selectAllChildren(document.querySelector(s)) ?? String(getSelection())"
    text = str(page.evaluate(select, selector))
    page.evaluate("getSelection().removeAllRanges()")
    return text


def test_a_run_is_shown_with_names_and_both_probabilities(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" Gravity", " is", " a", " force"])))
    for name in ("Tokens", "Candidates", "KV cache", "Timeline"):
        assert page.get_by_role("region", name=name, exact=True).count() == 1
    assert page.get_by_role("button", name="force, probability 75.0 %").count() == 1
    rows = page.locator(".ft-rows [data-id]")
    assert rows.first.get_attribute("aria-label").endswith("after settings 75.0 %, chosen")
    shown = page.locator(".ft-rows [data-processed]:not([hidden])").evaluate_all(
        "rows => rows.map((r) => [Number(r.dataset.raw), Number(r.dataset.processed)])"
    )
    assert sum(processed for _, processed in shown) == pytest.approx(1, abs=1e-6)
    assert sum(raw for raw, _ in shown) == pytest.approx(1, abs=1e-6)
    assert page.get_by_text("top-p 0.9 cuts here").is_visible()


def test_the_finding_comes_first_and_keeps_prefill_and_decode_apart(stage: Any) -> None:
    """Cases 24 and 31."""
    page = stage()
    send(page, packet([started(), Prefilling("r", 256, 2000, 1.2)]))
    assert page.locator(".ft-lead").inner_text() == "Reading 2,000 tokens: 256 done after 1.2 s"
    send(page, packet(whole_run([" a"] * 38)))
    assert page.locator(".ft-lead").inner_text() == "4 tokens read in 100 ms, then 37 more, one every 30 ms"
    rates = page.locator(".ft-sub").inner_text()
    assert "prefill 40.0 tok/s, decode 33.3 tok/s, 95th percentile 30 ms" in rates


def test_rates_are_shown_while_the_run_goes_on(stage: Any) -> None:
    """Case 24: the decode rate stands there long before the end."""
    page = stage()
    send(
        page,
        packet(
            [started(), Prefilling("r", 4, 4, 0.1), prefilled(), *(step(i, token(" a")) for i in range(5))]
        ),
    )
    assert "decode 33.3 tok/s" in page.locator(".ft-sub").inner_text()


def test_bytes_are_those_of_the_record_at_the_cursor(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 10)))
    card = page.get_by_role("region", name="KV cache")
    tokens(page).nth(6).click()
    values = [card.get_attribute(f"data-{name}") for name in ("tokens", "used", "predicted", "allocated")]
    assert values == ["10", *[str(10 * EACH)] * 3]
    assert "450 KiB" in card.inner_text() and "equal" in card.inner_text()


def test_the_cursor_moves_by_keys_and_asks_nobody(stage: Any) -> None:
    page = stage()
    words = [f" w{i}" for i in range(12)]
    send(page, packet(whole_run(words)))
    tokens(page).nth(3).focus()
    for key, at in (("ArrowRight", 5), ("End", 12), ("ArrowLeft", 11), ("Home", 1)):
        page.keyboard.press(key)
        assert page.get_by_role("heading", name=f"Token {at} of the answer").count() == 1
    assert page.evaluate("document.activeElement.dataset.i") == "0"
    assert page.evaluate("sent") == []


def test_gaps_are_asked_for_overlaps_ignored_and_another_run_replaces(stage: Any) -> None:
    page = stage()
    events = whole_run([" a"] * 8)
    send(page, packet(events[:4]), packet(events[6:8], first=6, seq=1), packet(events[7:9], first=7, seq=2))
    assert page.evaluate("sent") == [["gap", {"run": "r", "from": 4}]]
    send(page, packet(events[2:], first=2, seq=3))
    assert page.evaluate("firstTokenStage.counters.events") == len(events)
    assert tokens(page).count() == 8
    other: list[Event] = [started(run="q"), prefilled(run="q"), step(0, token("New"), run="q")]
    send(page, packet(other, run="q", seq=4))
    assert tokens(page).all_inner_texts() == ["New"]


@pytest.mark.parametrize(
    ("pieces", "joined"),
    [
        ([piece("f09f", 1), piece("98", 2), piece("8a", 3)], "😊"),
        ([piece("e881", 1), piece("aa", 2)], "聪"),
        ([piece("f0a0", 1), piece("aeb7", 2)], "𠮷"),
        ([token("👩", 1), token("\u200d", 2), piece("f09f", 3), piece("94ac", 4)], "👩\u200d🔬"),
    ],
)
def test_pieces_of_one_character_are_grouped_and_show_their_bytes(
    stage: Any, pieces: Any, joined: str
) -> None:
    """Case 1."""
    page = stage()
    whole = b"".join(bytes.fromhex(p.bytes) for p in pieces)
    assert whole.decode() == joined
    texts = ["" if "\ufffd" in p.text else p.text for p in pieces]
    texts[-1] = joined.removeprefix("".join(texts[:-1]))
    answer = [token("So"), *pieces, token(" on")]
    steps = [step(i, t, text) for i, (t, text) in enumerate(zip(answer, ["So", *texts, " on"], strict=True))]
    send(page, packet([started(), prefilled(), *steps, finished(f"So{joined} on")]))
    group = page.locator(".ft-group")
    assert group.count() == 1 and group.locator(".ft-joined").inner_text() == joined
    shown = group.locator(".ft-piece").evaluate_all("chips => chips.map((c) => c.dataset.bytes)")
    assert [s.replace(" ", "") for s in shown] == [p.bytes for p in pieces]
    assert copied(page) == f"So{joined} on"


def test_white_space_is_visible_and_copies_as_it_was(stage: Any) -> None:
    """Case 4."""
    page = stage()
    parts = ["a", "\n\n", "    b", "\t", "\x07"]
    steps = [step(i, token(part)) for i, part in enumerate(parts)]
    send(page, packet([started(*map(token, parts[:4])), prefilled(), *steps, finished("".join(parts))]))
    marks = page.locator(".ft-answer .ft-mark").evaluate_all("nodes => nodes.map((n) => n.dataset.mark)")
    assert marks == ["↵", "↵", "····", "⇥", "\\x07"]
    assert copied(page) == "a\n\n    b\t\x07"
    page.get_by_role("button", name="show", exact=True).click()
    assert copied(page, ".ft-prompt") == "a\n\n    b\t"


def test_nothing_from_a_model_is_ever_markup(stage: Any) -> None:
    """Case 7."""
    page = stage()
    begin = started(token(NASTY), notes=(Note("other", NASTY), Note("raw_adds", "", NASTY)))
    events: list[Event] = [begin, prefilled(), step(0, token(NASTY)), finished(NASTY)]
    send(page, packet(events, note=NASTY, error=NASTY))
    page.get_by_role("button", name="show", exact=True).click()
    tokens(page).first.hover()
    assert page.locator("#root :is(img, script, think)").count() == 0
    assert page.evaluate("window.broken") is None
    assert copied(page) == NASTY
    said = page.locator(".ft-notes").inner_text()
    assert said.count(NASTY) == 3 and "adds" in said
    compare = stage("quiet&layout=compare")
    lanes = (Decoding(name=NASTY, seed=1), Decoding(name=NASTY, seed=2))
    steps = [step(0, token(NASTY)), step(0, token("b", 7), lane=1)]
    failures = [Failed("r", lane, NASTY, 1.0) for lane in (0, 1)]
    send(compare, packet([started(lanes=lanes), prefilled(), *steps, *failures]))
    assert compare.locator("#root :is(img, script, think)").count() == 0
    assert compare.evaluate("window.broken") is None


def test_a_stop_string_is_not_in_the_text_but_its_steps_are(stage: Any) -> None:
    page = stage()
    words = ["quick", " br", "own", " fox"]
    steps = [step(i, token(word, 50 + i)) for i, word in enumerate(words)]
    end = finished("quick br", "stop_string", stop_string="own fox", withheld_steps=2)
    send(page, packet([started(), prefilled(), *steps, end]))
    assert copied(page) == "quick br"
    assert "fox" not in page.locator(".ft-answer").inner_text()
    assert tokens(page).count() == 4
    assert "withheld" in tokens(page).nth(3).get_attribute("aria-label")


def test_a_lone_space_at_the_end_of_the_prompt_is_warned_about(stage: Any) -> None:
    """Case 6."""
    page = stage()
    send(page, packet([started(token("cat"), token(" ")), prefilled(2)]))
    assert page.get_by_text("ends with a token that is only a space").is_visible()
    send(page, packet([started(token("a"), token(" cat"), run="q")], run="q"))
    assert not page.get_by_text("ends with a token that is only a space").is_visible()


def test_greedy_says_so_and_has_no_needle(stage: Any) -> None:
    page = stage()
    both = (
        Candidate(token(" a"), math.log(0.5), 1.0),
        Candidate(token(" b", 9), math.log(0.3), 0.0, "greedy"),
    )
    how: dict[str, Any] = {"draw": None, "origin": "argmax", "kept_count": 1, "candidates": both}
    greedy = step(0, token(" a"), processed_probability=1.0, **how)
    send(page, packet([started(lanes=(GREEDY,)), prefilled(), greedy]))
    card = page.get_by_role("region", name="Candidates")
    assert "nothing was drawn" in card.inner_text() and "no draw" in card.inner_text()
    assert not page.locator(".ft-needle").is_visible()
    assert page.locator("[data-removed=greedy]").get_attribute("data-processed") == "0"


@pytest.mark.alone
def test_two_thousand_steps_at_two_hundred_a_second_are_there_within_a_second(stage: Any) -> None:
    """Case 21: no step lost, and the page within a second of the last packet."""
    page = stage()
    words = [f" w{i}" for i in range(2000)]
    events = whole_run(words)
    packets = [packet(events[:2])]
    packets += [packet(events[i : i + 8], first=i, seq=i) for i in range(2, len(events), 8)]
    late_ms = page.evaluate(
        """packets => new Promise((done) => {
          const began = performance.now();
          let sent = 0;
          const timer = setInterval(() => {
            const due = Math.min(packets.length, 1 + Math.floor((performance.now() - began) / 40));
            while (sent < due) firstTokenStage.packet(packets[sent++]);
            if (sent < packets.length) return;
            clearInterval(timer);
            const last = performance.now();
            const look = () => firstTokenStage.counters.painted === 2000
              ? done(performance.now() - last) : requestAnimationFrame(look);
            look();
          }, 10);
        })""",
        packets,
    )
    assert late_ms < 1000
    assert page.evaluate("firstTokenStage.counters") == {
        "packets": len(packets), "gaps": 0, "events": 2003, "painted": 2000, "backlog": 0, "steps": 2000,
    }  # fmt: skip
    assert tokens(page).count() == 2000


def test_a_thousand_updates_reuse_what_is_there(stage: Any) -> None:
    page = stage()
    events = whole_run([f" w{i}" for i in range(1000)])
    send(page, packet(events))
    grown = page.evaluate(
        """async () => {
          const count = () => document.querySelectorAll('#root *').length;
          const row = document.querySelector('.ft-rows > *');
          const before = count();
          const chips = document.querySelectorAll('.ft-answer .ft-token');
          for (let i = 0; i < 1000; i += 1) chips[i].click();
          return [count() - before, row === document.querySelector('.ft-rows > *')];
        }"""
    )
    assert grown == [0, True]


def test_three_runs_in_a_row_leave_the_page_as_large_as_one(stage: Any) -> None:
    """Case 21: the memory of the page stays flat."""
    page = stage()
    sizes = []
    for run in ("a", "b", "c"):
        events: list[Event] = [started(run=run), prefilled(run=run)]
        events += [step(i, token(f" w{i}"), run=run) for i in range(800)]
        send(page, packet([*events, finished("x", run=run)], run=run))
        sizes.append(page.evaluate("document.querySelectorAll('#root *').length"))
    assert sizes[0] == sizes[1] == sizes[2]


@pytest.mark.alone
def test_five_thousand_imported_tokens_do_not_freeze_the_page(stage: Any) -> None:
    page = stage()
    whole = packet(whole_run([f" w{i}" for i in range(5000)]))
    longest_ms = page.evaluate(
        """whole => new Promise((done) => {
          let last = performance.now(), longest = 0;
          firstTokenStage.packet(whole);
          const look = () => {
            const now = performance.now();
            longest = Math.max(longest, now - last);
            last = now;
            if (firstTokenStage.counters.painted === 5000) done(longest);
            else requestAnimationFrame(look);
          };
          requestAnimationFrame(look);
        })""",
        whole,
    )
    assert longest_ms < 1500
    assert "One bar is the mean of" in page.get_by_role("region", name="Timeline").inner_text()
    assert page.locator(".ft-timeline *").count() < 80


def test_words_of_the_trade_open_a_definition_that_escape_closes(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 5)))
    word = page.get_by_role("region", name="Candidates").get_by_role("button", name="surprisal")
    word.focus()
    page.keyboard.press("Enter")
    note = page.locator(".ft-definition")
    assert note.is_visible() and "−log2" in note.inner_text()
    page.keyboard.press("Escape")
    assert not note.is_visible()
    assert word.evaluate("node => node === document.activeElement")


def test_every_word_with_a_dotted_line_has_a_definition() -> None:
    for language in ("en", "zh"):
        words = json.loads((ROOT / "assets/i18n" / f"{language}.json").read_text("utf-8"))["stage"]
        used = {part.split("|")[0] for part in json.dumps(words).split("[[")[1:]}
        assert used and used <= set(words["glossary"])


def test_on_a_phone_a_tap_opens_a_sheet_and_targets_are_large(stage: Any) -> None:
    page = stage("quiet", 390, 844, has_touch=True, is_mobile=True)
    send(page, packet(whole_run([" force"] * 30)))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    tokens(page).nth(4).tap()
    sheet = page.get_by_role("dialog", name="Token")
    assert sheet.is_visible() and "Token 5 of the answer" in sheet.inner_text()
    assert sheet.locator(".ft-sheet-row").count() == 6
    sheet.get_by_role("button", name="Next").tap()
    assert "Token 6 of the answer" in sheet.inner_text()
    heights = sheet.locator(".ft-button").evaluate_all("nodes => nodes.map((n) => n.offsetHeight)")
    assert min(heights) >= 40
    target = tokens(page).nth(4).evaluate("node => node.getClientRects()[0].height")
    assert target >= 39.5
    sheet.get_by_role("button", name="Close").tap()
    assert not sheet.is_visible()


def test_the_tour_is_offered_once_and_never_covers_what_it_explains(stage: Any) -> None:
    page = stage("")
    recorded = packet(whole_run([" force"] * 40), label="recorded")
    send(page, recorded)
    tour = page.get_by_role("note", name="Tour")
    for n in range(1, 6):
        assert f"{n} of 5" in tour.inner_text()
        apart = page.evaluate(
            """() => {
              const a = document.querySelector('.ft-tour').getBoundingClientRect();
              const b = document.querySelector('.ft-toured').getBoundingClientRect();
              return a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
            }"""
        )
        assert apart, n
        if n < 5:
            tour.get_by_role("button", name="Next").click()
    page.keyboard.press("Escape")
    assert not tour.is_visible()
    page.reload()
    page.wait_for_function("window.firstTokenStage")
    send(page, recorded)
    assert not page.locator(".ft-tour").is_visible()
    page.evaluate("firstTokenStage.tour()")
    assert page.locator(".ft-tour").is_visible()


def test_an_error_and_a_loading_line_stand_where_the_result_would(stage: Any) -> None:
    page = stage()
    progress = {"sentence": "Fetching", "done_bytes": 2**20, "total_bytes": 2**22}
    send(page, {"seq": 1, "error": "", "progress": progress})
    assert "1 MiB of 4 MiB" in page.get_by_role("status").inner_text()
    message = "The prompt is empty; nothing was run."
    send(page, packet(whole_run([" a"] * 3)), {"seq": 2, "error": message, "progress": None})
    assert page.get_by_role("alert").inner_text() == message
    assert tokens(page).count() == 3
    assert not page.get_by_role("status").is_visible()


def top(page: Any, selector: str) -> float:
    return float(page.locator(selector).first.evaluate("node => node.getBoundingClientRect().top"))


def test_a_loading_line_and_longer_numbers_move_nothing(stage: Any) -> None:
    page = stage()
    rare = step(
        1, token(" rare", 7), raw=3e-6, raw_rank=41_234, processed_probability=4.2e-7, kept_count=49_152
    )
    send(page, packet([started(), prefilled(), step(0, token("A")), rare]))
    held = (".ft-answer", ".ft-card-timeline", ".ft-rows", ".ft-card-memory")
    before = [top(page, selector) for selector in held]
    send(page, {"seq": 1, "progress": {"sentence": "Fetching", "done_bytes": 1, "total_bytes": 9}})
    assert page.get_by_role("status").is_visible()
    assert [top(page, selector) for selector in held] == before
    tokens(page).nth(0).click()
    assert [top(page, selector) for selector in held] == before


def test_the_end_is_said_in_words_and_named_on_hover(stage: Any) -> None:
    page = stage()
    last = step(1, token("<|im_end|>", 2, special=True), "")
    send(page, packet([started(), prefilled(), step(0, token("Yes")), last, finished("Yes", "stop_token")]))
    end = tokens(page).nth(1)
    assert end.inner_text() == "end of answer" and end.get_attribute("title") == "<|im_end|>"
    assert end.get_attribute("aria-label").startswith("<|im_end|>, probability")
    assert copied(page) == "Yes"
    end.click()
    assert page.locator(".ft-card-candidates .ft-token-big").inner_text() == "<|im_end|>"


def test_a_number_is_never_parted_from_its_unit(stage: Any) -> None:
    page = stage(width=700)
    send(page, packet(whole_run([" a"] * 38)))
    for value in page.locator(".ft-headline .ft-value, .ft-why .ft-value").all():
        assert value.evaluate("node => node.getClientRects().length") == 1


def test_nothing_is_worked_out_from_a_prediction_that_is_not_there(stage: Any) -> None:
    page = stage()
    send(page, packet([started(), prefilled(), step(0, token("A"), kv_predicted_bytes=None)]))
    card = page.get_by_role("region", name="KV cache").inner_text()
    assert "Predicted –" in card and "MHA" not in card and "0 B" not in card


def test_constant_state_stands_apart_and_a_difference_has_its_reason(stage: Any) -> None:
    """Case 38."""
    reasons = (Reason("kv_window", "In English."), Reason("kv_new", "<b>A reason</b> of a newer version."))
    facts = replace(
        FACTS, kv_bytes_per_token=0, kv_formula=None, kv_state_bytes=3 * 2**20, kv_reasons=reasons
    )  # fmt: skip
    begun = replace(started(), model=facts)
    page = stage()
    equal = {"kv_used_bytes": 0, "kv_predicted_bytes": 0, "kv_state_bytes": 3 * 2**20}
    send(page, packet([begun, prefilled(), step(0, token("A"), **equal)]))
    card = page.get_by_role("region", name="KV cache")
    assert "Beside it 3 MiB of constant state, the same at any length (predicted 3 MiB)." in card.inner_text()
    assert "equal" in card.inner_text() and "Transformers keeps one" not in card.inner_text()
    less = step(1, token("B"), kv_used_bytes=EACH, kv_predicted_bytes=2 * EACH, kv_state_bytes=3 * 2**20)
    send(page, packet([less], first=3, seq=1))
    text = card.inner_text()
    assert "differs" in text and "Transformers keeps one position fewer" in text and "In English" not in text
    assert "<b>A reason</b> of a newer version." in text
    assert card.get_attribute("data-state") == str(3 * 2**20)


def test_weights_that_no_device_holds_alone_are_shown_by_place(stage: Any) -> None:
    page = stage()
    send(page, packet([started(), prefilled(), step(0, token("A"))]))
    places = page.locator(".ft-card-memory .ft-weights")
    assert places.is_hidden()
    spread = replace(FACTS, weights_places=(("cuda:0", 3 * 2**30), ("cpu", 2**29), ("disk", 2**20)))
    begun = replace(started(run="s"), model=spread)
    send(page, packet([begun, prefilled(run="s"), step(0, token("A"), run="s")], run="s"))
    said = places.inner_text().replace("\u00a0", " ")
    assert said == "The model's weights: 3 GiB on GPU 0, 512 MiB in CPU memory, 1 MiB on disk."


def test_a_model_without_state_says_nothing_of_it(stage: Any) -> None:
    page = stage()
    send(page, packet([started(), prefilled(), step(0, token("A"), kv_state_bytes=0)]))
    assert page.locator(".ft-aside").is_hidden()


@pytest.mark.parametrize("u", [0.0, 0.9995])
def test_the_needle_and_its_number_stay_on_the_strip(stage: Any, u: float) -> None:
    page = stage()
    send(page, packet([started(), prefilled(), step(0, token("A"), draw=u)]))
    inside = page.evaluate(
        """() => {
          const of = (s) => document.querySelector(s).getBoundingClientRect();
          const [strip, value] = [of('.ft-strip'), of('.ft-needle-value')];
          return value.left >= strip.left && value.right <= strip.right;
        }"""
    )
    assert inside


def test_very_small_probabilities_keep_to_their_columns(stage: Any) -> None:
    page = stage()
    many = tuple(Candidate(token(f" word{i}", 500 + i), math.log(0.00058), 4.7e-4) for i in range(12))
    rare = Candidate(token(" rare", 7), math.log(3e-6), 4.2e-7)
    how: dict[str, Any] = {"raw": 3e-6, "raw_rank": 41_234, "kept_count": 49_152}
    send(page, packet([started(), prefilled(), step(0, token(" rare", 7), candidates=(*many, rare), **how)]))
    over = page.locator(".ft-rows .ft-row:not([hidden]) .ft-number").evaluate_all(
        "cells => cells.filter((c) => c.scrollWidth > c.clientWidth).map((c) => c.textContent)"
    )
    assert over == []


def test_the_tip_of_a_very_long_token_still_says_its_probability(stage: Any) -> None:
    page = stage()
    send(page, packet([started(), prefilled(), step(0, token("long" * 60))]))
    tokens(page).first.hover()
    said = page.locator(".ft-tip").inner_text()
    assert "…" in said and "75.0 % after settings" in said and len(said) < 120


def test_a_tapped_token_stays_above_the_sheet(stage: Any) -> None:
    page = stage("quiet", 390, 844, has_touch=True, is_mobile=True)
    send(page, packet(whole_run([" force"] * 60)))
    page.evaluate("scrollTo(0, document.querySelector('.ft-answer').getBoundingClientRect().bottom - 844)")
    tokens(page).nth(59).tap()
    assert page.evaluate(
        """() => document.querySelector('.ft-token[aria-current]').getClientRects()[0].bottom
             <= document.querySelector('.ft-sheet').getBoundingClientRect().top"""
    )


def test_language_changes_in_place_and_keeps_the_cursor(stage: Any) -> None:
    page = stage()
    send(page, packet(whole_run([" a"] * 9)))
    tokens(page).nth(4).click()
    chinese = json.loads((ROOT / "assets/i18n/zh.json").read_text("utf-8"))["stage"]
    page.evaluate("text => firstTokenStage.setText(text)", chinese)
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.get_by_role("heading", name="回答的第 5 个词元").count() == 1
    assert page.get_by_role("region", name="词元").count() == 1


def lanes_run() -> list[Event]:
    lanes = (GREEDY, Decoding(seed=1, name="Balanced"), Decoding(seed=2))
    words = (["The", " sea", " is"], ["The", " sea", " was"], ["An", " ocean", " is"])
    ids = {word: 100 + i for i, word in enumerate(sorted({w for lane in words for w in lane}))}
    events: list[Event] = [started(lanes=lanes), prefilled()]
    for i in range(3):
        events += [step(i, token(lane[i], ids[lane[i]]), lane=n) for n, lane in enumerate(words)]
    return events + [finished("".join(lane), lane=n) for n, lane in enumerate(words)]


def test_lanes_show_where_they_part_and_every_fork_can_be_opened(stage: Any) -> None:
    page = stage("quiet&layout=compare")
    events = lanes_run()
    send(page, packet(events[:5]))
    send(page, packet(events[5:], first=5, seq=1))
    lane = page.get_by_role("region", name="Balanced")
    assert lane.locator(".ft-shared").count() == 2
    assert lane.locator(".ft-parting").inner_text() == " was"
    assert "token 3" in lane.inner_text()
    fork = page.get_by_role("region", name="At the fork")
    forks = [text for text in fork.get_by_role("button").all_inner_texts() if "token" in text]
    assert forks == ["Balanced, token 3", "Run C, token 1"]
    assert "Run C leaves Run A at token 1" in fork.inner_text()
    cells = fork.locator("[data-lane='2'][data-id]")
    assert cells.count() >= 4 and cells.first.get_attribute("data-raw")
    fork.get_by_role("button", name="Balanced, token 3").click()
    assert "Balanced leaves Run A at token 3" in fork.inner_text() and "has left already" in fork.inner_text()
    assert page.evaluate("firstTokenStage.counters.painted") == 9


def test_a_lane_named_after_a_preset_is_called_so_in_the_language_of_the_page(stage: Any) -> None:
    page = stage("quiet&layout=compare&lang=zh")
    send(page, packet(lanes_run()))
    assert page.get_by_role("region", name="均衡", exact=True).count() == 1
    assert page.get_by_role("region", name="并列运行 C").count() == 1


def test_a_phone_swipes_the_lanes_inside_their_row(stage: Any) -> None:
    page = stage("quiet&layout=compare", 390, 844)
    send(page, packet(lanes_run()))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator(".ft-lanes").evaluate("row => row.scrollWidth > row.clientWidth")
