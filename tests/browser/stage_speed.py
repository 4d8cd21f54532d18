"""How fast the stage is: run on a quiet machine, `python -m tests.browser.stage_speed`; the last line is JSON.

From a key press to the frame that shows it on a run of 1,000 tokens, opening a record of 5,000, and three
replays of 2,000 tokens at 200 a second with the page's heap after each. No test: it reads clocks.
"""

import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import ThreadingHTTPServer
from typing import Any

from playground.core.events import Event, Stepped
from playground.core.tokens import Candidate
from tests.browser.conftest import Files
from tests.browser.stage_events import ROOT, packet, token, whole_run
from tests.watching import CHROMIUM_ARGUMENTS

MOVES = """async (moves) => {
  const slider = document.querySelector('.ft-timeline');
  slider.focus();
  const frame = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();  // runs after the frame is painted
    channel.port1.onmessage = () => done();
    channel.port2.postMessage(0);
  }));
  const [whole, script] = [[], []];
  for (let i = 0; i < moves; i += 1) {
    await frame();
    const began = performance.now();
    const key = i % 50 === 0 ? (i % 100 ? 'Home' : 'End') : i % 100 < 50 ? 'ArrowLeft' : 'ArrowRight';
    slider.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    script.push(performance.now() - began);
    document.body.offsetHeight;
    await frame();
    whole.push(performance.now() - began);
  }
  const at = (all, q) => [...all].sort((a, b) => a - b)[Math.floor(q * (all.length - 1))];
  return {
    median_ms: at(whole, .5), p95_ms: at(whole, .95), script_median_ms: at(script, .5), script_p95_ms: at(script, .95),
  };
}"""

OPENING = """whole => new Promise((done) => {
  const began = performance.now();
  let [last, longest] = [began, 0];
  firstTokenStage.packet(whole);
  const look = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (firstTokenStage.counters.backlog === 0) done({ open_ms: now - began, longest_frame_ms: longest });
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""

REPLAY = """([packets, each_ms]) => new Promise((done) => {
  const began = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = Math.min(packets.length, 1 + Math.floor((performance.now() - began) / each_ms));
    while (sent < due) firstTokenStage.packet(packets[sent++]);
    if (sent < packets.length) return;
    clearInterval(timer);
    const last = performance.now();
    const look = () => firstTokenStage.counters.backlog === 0
      ? done({ late_ms: performance.now() - last, ...firstTokenStage.counters }) : requestAnimationFrame(look);
    look();
  }, 10);
})"""


def made(tokens: int) -> list[Event]:
    """A whole run with as many candidates a step as the page asks for."""
    others = [
        Candidate(token(f" other{i}", 600 + i), math.log(0.02 / (i + 1)), 0.0, "top_p") for i in range(15)
    ]
    events = whole_run([f" w{i}" for i in range(tokens)])
    return [replace(e, candidates=(*e.candidates, *others)) if isinstance(e, Stepped) else e for e in events]


def replay(page: Any, run: str, tokens: int = 2000, a_second: int = 200) -> dict[str, Any]:
    """One replay in packets of 40 ms, and the heap in use after it and a collection."""
    events = made(tokens)
    size = a_second // 25
    parts = [packet(events[i : i + size], first=i, run=run, seq=i) for i in range(0, len(events), size)]
    found: dict[str, Any] = page.evaluate(REPLAY, [parts, 40])
    return found | {"heap_bytes": heap(page)}


def heap(page: Any) -> int:
    """Bytes of the page's heap that are in use, after two collections."""
    session = page.context.new_cdp_session(page)
    for _ in range(2):
        session.send("HeapProfiler.collectGarbage")
    used = int(session.send("Runtime.getHeapUsage")["usedSize"])
    session.detach()
    return used


@contextmanager
def opened() -> Iterator[Any]:
    """`new()`: a fresh page with an empty stage."""
    from playwright.sync_api import sync_playwright

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(ROOT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    arguments = CHROMIUM_ARGUMENTS + ["--no-sandbox"] * (hasattr(os, "geteuid") and os.geteuid() == 0)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)

        def new() -> Any:
            page = chromium.new_page(viewport={"width": 1440, "height": 1000})
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/tests/browser/stage_page.html?quiet")
            page.wait_for_function("window.firstTokenStage")
            return page

        yield new
        chromium.close()
    server.shutdown()


def main() -> None:
    """Measure, and print what was found."""
    with opened() as new:
        page = new()
        page.evaluate(OPENING, packet(made(1000)))
        cursor = page.evaluate(MOVES, 400)
        tool = {}
        for name in ("slide temperature", "draw 200 times", "stages"):
            page.get_by_role("button", name=name, exact=True).click()
            tool[name] = page.evaluate(MOVES, 200)
        print("cursor, 1,000 tokens:", cursor, tool, sep="\n  ")
        page = new()
        opening = page.evaluate(OPENING, packet(made(5000)))
        print("5,000 tokens opened:", opening)
        moving = page.evaluate(MOVES, 200)
        print("cursor, 5,000 tokens:", moving)
        page = new()
        replays = [replay(page, run) for run in ("a", "b", "c")]
        print("replays:", *replays, sep="\n  ")
    sys.stdout.write(json.dumps({
        "cursor_1000": cursor, "cursor_1000_with_tool": tool, "open_5000": opening, "cursor_5000": moving,
        "replay": replays, "heap_growth": replays[2]["heap_bytes"] / replays[0]["heap_bytes"] - 1,
    }) + "\n")  # fmt: skip


if __name__ == "__main__":
    main()
