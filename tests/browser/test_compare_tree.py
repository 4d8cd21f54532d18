"""Many draws as a tree, and the same logits under other settings: drawn from records, without a model."""

from pathlib import Path
from typing import Any

import pytest

from playground.core.codec import encode
from playground.core.decoding import Decoding
from playground.core.events import Event, Failed
from playground.core.run import fold
from playground.core.trace import load_trace
from playground.core.tree import Branch, tree
from tests.browser.stage_events import NASTY, finished, packet, prefilled, send, started, step, token

pytestmark = pytest.mark.browser

TRACES = Path(__file__).parents[2] / "assets" / "traces"
SHARES = {"a": 0.5, "b": 0.25, "c": 0.8, "d": 0.1, "e": 0.05}


def draws(*texts: str, seed: int = 5) -> list[Event]:
    """A run of lanes that took these letters; a letter more is the hostile token."""
    lanes = tuple(Decoding(seed=seed + i) for i in range(len(texts)))
    events: list[Event] = [started(lanes=lanes), prefilled()]
    for i in range(max(map(len, texts))):
        for lane, text in enumerate(texts):
            if i < len(text):
                chosen = token(f" {text[i]}" if text[i] != "x" else NASTY, ord(text[i]))
                p = SHARES.get(text[i], 0.01)
                events.append(step(i, chosen, lane=lane, processed_probability=p))
    for lane, text in enumerate(texts):
        written = "".join(f" {letter}" if letter != "x" else NASTY for letter in text)
        events.append(finished(written, lane=lane))
    return events


def branches(branch: Branch) -> list[tuple[str, int, float]]:
    """Every branch from top to bottom, as the page has it where all are open."""
    found = [(",".join(map(str, branch.token_ids)), branch.count, branch.probability)]
    return found + [one for child in branch.children for one in branches(child)]


def rows(page: Any) -> list[tuple[str, int, float]]:
    return [
        (ids, int(count), pytest.approx(float(p)))
        for ids, count, p in page.locator(".ft-tree-row[data-ids]").evaluate_all(
            "rows => rows.map((r) => [r.dataset.ids, r.dataset.count, r.dataset.probability])"
        )
    ]


def test_the_tree_grows_in_place_is_walked_by_keys_and_agrees_with_python(stage: Any) -> None:
    texts = ["abca", "abcb", "abd", "acd", "acd", "acdx", "e", "abcaa", "ab"]
    events = draws(*texts)
    page = stage("quiet&layout=compare")
    early = next(i for i, event in enumerate(events) if getattr(event, "step", 0) == 2)
    send(page, packet(events[:early]))
    assert (
        page.locator(".ft-lanes").is_hidden() and page.get_by_role("region", name="At the fork").count() == 0
    )
    assert rows(page) == branches(tree(fold(events[:early]).lanes))
    page.evaluate("window.first = document.querySelector('.ft-tree-row')")
    page.locator(".ft-tree-row").first.focus()
    send(page, packet(events[early:], first=early, seq=1))
    assert rows(page) == branches(tree(fold(events).lanes))
    assert page.evaluate("first.isConnected && document.activeElement === first")  # case 22: in place
    assert (
        "9 draws with T 0.7, top-p 0.9 gave 8 different continuations"
        in page.locator(".ft-card-tree").inner_text()
    )
    assert page.locator(".ft-tree-row", has_text="(1 end here)").count() >= 1
    assert page.evaluate("window.broken") is None and NASTY in page.locator(".ft-tree").inner_text()

    before = page.locator(".ft-tree-row").count()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-level')") == "2"
    page.keyboard.press("ArrowLeft")
    closed = page.locator(".ft-tree-row").count()
    assert closed < before and page.locator(".ft-tree-row[aria-expanded='false']").count() == 1
    page.keyboard.press("ArrowRight")
    assert page.locator(".ft-tree-row").count() == before
    page.keyboard.press("Enter")
    chosen = page.locator(".ft-tree-chosen").inner_text()
    assert "8 of 9 draws (88.9 %) came this way" in chosen and "probability of 50.0 %" in chosen
    page.keyboard.press("End")
    page.keyboard.press("Home")
    assert page.evaluate("document.activeElement === first")
    table = page.get_by_role("region", name="Measures")
    assert table.locator("tbody tr").count() == 9 and "seed 5" in table.inner_text()


def test_64_draws_show_a_bounded_number_of_rows(stage: Any) -> None:
    letters = "abcdefghijklmnopqrstuvwyz"
    texts = ["a" + letters[i % 25] + letters[i // 25] + letters[i % 7] * 3 for i in range(64)]
    page = stage("quiet&layout=compare", width=390)
    send(page, packet(draws(*texts)))
    assert 8 <= page.locator(".ft-tree-row").count() <= 27
    rest = page.locator(".ft-tree-row:not([data-ids])").first
    assert "more draws in" in rest.inner_text()
    shown = page.locator(".ft-tree-row").count()
    rest.click()
    assert page.locator(".ft-tree-row").count() > shown
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    first = page.locator(".ft-tree-row").first.bounding_box()
    assert first["height"] >= 40


CHECK = """async ([runs, path]) => {
  const { wouldTake } = await import('/assets/stage/other_sampler.js');
  const { Run, advance } = await import('/assets/stage/run.js');
  const found = { right: 0, unknown: 0, wrong: [] };
  for (const events of runs) {
    const run = new Run('x');
    for (const event of events) advance(run, event);
    for (const lane of run.lanes) lane.steps.forEach((step, i) => {
      const d = lane.decoding;
      const prompt = d.penalty_scope === 'output' ? [] : run.started.prompt.map((t) => t[0]);
      const seen = new Set([...prompt, ...lane.ids.slice(0, i)]);
      const other = wouldTake(step, d, step.draw, seen, run.model.vocabulary);
      const p = step.processed_probability;
      const bracket = other.low * (1 - 1e-4) - 1e-6 <= p && p <= other.high * (1 + 1e-4) + 1e-6;
      if (other.unknown) found.unknown += 1;
      else if (other.token === step.token.id && bracket) found.right += 1;
      else found.wrong.push([lane.index, i, other.token, step.token.id]);
      for (const [[id], , after, by] of step.candidates) {
        const row = other.rows.get(id);
        const off = row && row.processed !== null ? Math.abs(row.processed - after) : 0;
        if (off > Math.max(1e-5, 0.006 * after)) found.wrong.push([lane.index, i, id, row.processed, after]);
        if (row?.removedBy && after !== 0) found.wrong.push([lane.index, i, id, row.removedBy, by]);
      }
    });
  }
  return found;
}"""


def test_what_a_sampler_would_take_is_what_it_took_or_not_known(stage: Any) -> None:
    """Every step that ships: from the record alone, the lane's own settings lead to the lane's own token."""
    page = stage("quiet&layout=compare")
    files = sorted(TRACES.glob("*.jsonl"))
    runs = [[encode(event) for event in run.events] for file in files for run in load_trace(file).runs]
    found = page.evaluate(CHECK, [runs, ""])
    assert found["wrong"] == []
    assert found["right"] > 200 and found["unknown"] < found["right"] / 2


def test_a_lane_that_has_left_shows_what_it_would_take_from_the_same_logits(stage: Any) -> None:
    (recorded,) = load_trace(TRACES / "compare.jsonl").runs
    page = stage("quiet&layout=compare")
    send(page, packet(recorded.events, run=recorded.id))
    greedy = page.locator(".ft-lane").first
    fork = page.get_by_role("region", name="At the fork")
    greedy.locator(".ft-token").nth(6).click()  # after the forks: only the greedy run stands here
    assert "it would take" in fork.inner_text() and "has left already" in fork.inner_text()
    cells = fork.locator("[data-imagined]")
    assert cells.count() > 0
    page.get_by_label("Reference").select_option("1")
    page.locator(".ft-lane").nth(1).locator(".ft-token").nth(8).click()
    assert "Greedy" in fork.inner_text() and "it would take the most probable" in fork.inner_text()
    fork.get_by_role("button", name="Prove the numbers of").click()
    dialog = page.get_by_role("dialog")
    assert "token 9" in dialog.inner_text() and dialog.is_visible()
    page.keyboard.press("Escape")
    assert dialog.count() == 0 or not dialog.is_visible()


def test_a_lane_that_fails_leaves_the_others_whole(stage: Any) -> None:
    lanes = (Decoding(seed=1), Decoding(seed=2, top_k=4), Decoding(seed=3, min_p=0.1))
    events: list[Event] = [started(lanes=lanes), prefilled()]
    for i in range(3):
        events += [step(i, token(f" w{i}", 50 + i), lane=lane) for lane in range(3) if lane != 1 or i < 2]
    failed = Failed("r", 1, "The model's context is full; what this run had is kept.", 0.2)
    page = stage("quiet&layout=compare")
    send(page, packet([*events, failed]))
    card = page.locator(".ft-lane").nth(1)
    assert failed.message in card.inner_text() and card.locator(".ft-token").count() == 2
    assert card.locator(".ft-finish").get_attribute("data-state") == "error"
    for other in (0, 2):
        whole = page.locator(".ft-lane").nth(other)
        assert whole.locator(".ft-token").count() == 3
        assert whole.locator(".ft-finish").get_attribute("data-state") == "running"
    rest = [step(3, token(" on", 60), lane=0), *(finished(" w0 w1 w2 on", lane=lane) for lane in (0, 2))]
    send(page, packet(rest, first=len(events) + 1, seq=1))
    assert page.locator(".ft-lane").first.locator(".ft-token").count() == 4
    states = page.locator(".ft-finish").evaluate_all("all => all.map((one) => one.dataset.state)")
    assert states == ["max_new_tokens", "error", "max_new_tokens"]
    reasons = page.locator("td[data-key=finish_reason]").evaluate_all(
        "all => all.map((c) => c.dataset.value)"
    )
    assert reasons == states


def test_a_thousand_updates_write_in_place(stage: Any) -> None:
    """Case 22: chips are appended, cells rewritten; what was there stays, and so does a scrolled table."""
    lanes = tuple(Decoding(seed=1, top_k=4 + i) for i in range(4))
    events: list[Event] = [started(lanes=lanes), prefilled()]
    events += [step(i, token(f" w{i}", 50 + i % 40), lane=lane) for i in range(260) for lane in range(4)]
    page = stage("quiet&layout=compare", width=390)
    packets = [packet([event], first=i, seq=i) for i, event in enumerate(events)]
    send(page, *packets[:50])
    page.evaluate("""() => {
      window.kept = ['.ft-lane', '.ft-lane .ft-token', '.ft-measure-table tbody tr', '.ft-measure-table td',
        '.ft-fork-grid > *'].map((s) => document.querySelector(s));
      document.querySelector('.ft-measure-scroll').scrollLeft = 120;
      document.querySelector('.ft-lanes').scrollLeft = 200;
      window.removed = 0;
      const gone = (one) => [...one.removedNodes].filter((n) => n.nodeType === 1).length;
      new MutationObserver((all) => all.forEach((one) => { window.removed += gone(one); }))
        .observe(document.querySelector('.ft-compare'), { childList: true, subtree: true });
    }""")
    page.evaluate(
        """(packets) => new Promise((done) => {
          const next = () => { packets.splice(0, 12).forEach((p) => firstTokenStage.packet(p));
            packets.length ? requestAnimationFrame(next) : requestAnimationFrame(() => requestAnimationFrame(done)); };
          next();
        })""",
        packets[50:],
    )
    assert page.evaluate("kept.map((node) => node.isConnected)") == [True] * 5
    assert page.evaluate("removed") == 0
    assert page.locator(".ft-lane").first.locator(".ft-token").count() == 260
    assert page.evaluate("document.querySelector('.ft-measure-scroll').scrollLeft") == 120
    assert page.evaluate("firstTokenStage.counters.gaps") == 0
    # four lanes on a phone: one swipes from card to card, and the page itself does not move sideways
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".ft-lanes").evaluate(
        "n => [n.scrollWidth > n.clientWidth, getComputedStyle(n).scrollSnapType]"
    )
    assert box == [True, "x mandatory"]
