"""How Compare keeps up: run on a quiet machine, `python -m tests.browser.lanes_speed [--draws]`; the last line is JSON.

Four lanes of 512 tokens with 20 candidates a step (or 64 draws of 256) go through the whole page, from a
record at 40 tokens a second in each lane, three times over. Events lost, the times between frames while
they come, and the page's heap after each run. No test: it reads clocks.
"""

import json
import math
import shutil
import sys
from dataclasses import replace
from typing import Any

from playground.backends.replay import ReplayBackend
from playground.core.decoding import Decoding
from playground.core.events import Started, Stepped
from playground.core.run import Run, fold
from playground.core.tokens import Candidate, Token
from tests.browser.conftest import made_run
from tests.watching import CHROMIUM_ARGUMENTS

PACE = 40.0
RUNS = 3
CANDIDATES = 20

WATCH = """() => {
  window.frames_ms = [];
  window.long_tasks_ms = [];
  const tasks = (list) => long_tasks_ms.push(...list.getEntries().map((e) => e.duration));
  new PerformanceObserver(tasks).observe({ type: "longtask" });
  let last = performance.now();
  const look = (now) => { frames_ms.push(now - last); last = now; window.watching && requestAnimationFrame(look); };
  window.watching = true;
  requestAnimationFrame(look);
}"""

DONE = (
    """(events) => firstTokenCompare.counters.events >= events && firstTokenCompare.counters.backlog === 0"""
)

RESULT = """() => {
  watching = false;
  const sorted = frames_ms.slice(1).sort((a, b) => a - b);
  const at = (q) => sorted[Math.floor(q * (sorted.length - 1))];
  return { frames: sorted.length, median_ms: at(.5), p95_ms: at(.95), longest_ms: sorted.at(-1),
    long_tasks: long_tasks_ms.length, longest_task_ms: Math.max(0, ...long_tasks_ms),
    heap_bytes: performance.memory?.usedJSHeapSize ?? null, ...firstTokenCompare.counters };
}"""


def recorded(lanes: int, tokens: int) -> Run:
    """A run whose lanes part, with as many candidates a step as the page asks for."""
    others = [
        Candidate(Token(400 + i, f" other{i}"), math.log(0.002), 0.0, "top_p") for i in range(CANDIDATES - 3)
    ]
    events = []
    for event in made_run(tokens, lanes).events:
        if isinstance(event, Stepped):
            few = lanes > 4
            event = replace(event, candidates=event.candidates[:1] if few else (*event.candidates, *others))
        if isinstance(event, Started):
            seeded = tuple(Decoding(seed=7 + lane, max_new_tokens=tokens) for lane in range(lanes))
            event = replace(event, request=replace(event.request, lanes=seeded))
        events.append(event)
    return fold(events)


def measured(page: Any, events: int, *, draws: bool) -> dict[str, Any]:
    """One run on the page, from the press of the button to the last frame."""
    before = page.evaluate("sessionStorage.getItem('first-token.run.compare')")
    page.evaluate(WATCH)
    page.get_by_role("button", name="Draw many times" if draws else "Generate all").click()
    page.wait_for_function("(old) => sessionStorage.getItem('first-token.run.compare') !== old", arg=before)
    page.wait_for_function(DONE, arg=events, timeout=120_000)
    found: dict[str, Any] = page.evaluate(RESULT)
    return found | {"events_lost": events - found["events"]}


def main(*, draws: bool) -> None:
    from playwright.sync_api import sync_playwright

    from playground.ui.app import build, free_port, launch
    from playground.ui.models import Models

    run = recorded(64, 256) if draws else recorded(4, 512)
    demo = build(Models(lambda name, report: ReplayBackend(run, PACE), "tests/made", ("tests/made",)))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", 9400), quiet=True, prevent_thread_lock=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=[*CHROMIUM_ARGUMENTS, "--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 1000}, locale="en-US")
        page.goto(demo.local_url)
        page.wait_for_function("window.firstTokenStage && firstTokenStage.counters.packets > 0")
        page.keyboard.press("Escape")
        page.get_by_role("tab", name="Compare").click()
        runs = [measured(page, len(run.events), draws=draws) for _ in range(RUNS)]
        browser.close()
    demo.close()
    print(json.dumps({"what": "draws" if draws else "lanes", "runs": runs}))


if __name__ == "__main__":
    main(draws="--draws" in sys.argv)
