"""How the server is: its two addresses, and what becomes of its runs when it is ended."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from playground.backends.hosted import Runs
from playground.core.decoding import GREEDY
from playground.core.request import Request
from playground.core.trace import dump_trace, load_trace
from playground.ui import vitals as module
from playground.ui.app import build, free_port, launch
from playground.ui.models import Models
from playground.ui.vitals import Vitals
from tests.browser.conftest import made_run
from tests.ui.conftest import TAB, Echo

ROOT = Path(__file__).parents[2]


@pytest.fixture
def page(first_port: int) -> Iterator[Any]:
    demo = build(Models(lambda name, report: Echo(), "tests/none"))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    yield demo
    demo.close()


def ask(page: Any, path: str) -> httpx.Response:
    return httpx.get(page.local_url.rstrip("/") + path, timeout=20)


def value(text: str, name: str) -> float:
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name + " "))


def test_it_says_that_it_is_up_what_it_has_and_what_it_has_made(page: Any) -> None:
    runs: Runs = page.first_token_runs
    assert page.first_token_models.loaded() or list(page.first_token_models.ready()) is not None
    told = ask(page, "/health").json()
    assert told == {"status": "ok", "model": "tests/none", "model_state": "ready", "runs_in_flight": 0}
    run = runs.start(TAB.key("run"), Echo(), Request("secret words", (GREEDY, GREEDY)))
    assert run.over.wait(10)
    text = ask(page, "/metrics").text
    assert value(text, "first_token_tokens_generated_total") == 2 * len("secret words")
    assert value(text, 'first_token_lanes_ended_total{reason="max_new_tokens"}') == 2
    assert value(text, "first_token_time_to_first_token_seconds_count") == 1
    assert value(text, "first_token_inter_token_seconds_count") == 2 * (len("secret words") - 1)
    assert value(text, 'first_token_prompt_tokens_total{from="computed"}') == len("secret words")
    assert "secret" not in text and TAB.token not in text
    slow = runs.start(TAB.key("run"), Echo(pause_seconds=0.2), Request("x" * 200))
    assert ask(page, "/health").json()["runs_in_flight"] == 1
    assert value(ask(page, "/metrics").text, "first_token_runs_in_flight") == 1
    slow.stop()
    assert slow.over.wait(10)


def test_without_the_extra_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch, first_port: int) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    made = Vitals(Models(lambda name, report: Echo(), "tests/none"), Runs())
    made(Runs().start(TAB.key("run"), Echo(), Request("a")))
    demo = build(Models(lambda name, report: Echo(), "tests/none"))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    answer = ask(demo, "/metrics")
    demo.close()
    assert answer.status_code == 404 and "first-token[metrics]" in answer.text


def test_closing_waits_for_the_end_of_every_run_and_for_whoever_is_told_of_it() -> None:
    told: list[str] = []

    def at_end(run: Any) -> None:
        time.sleep(0.2)
        told.append(run.id)

    runs = Runs(at_end=at_end)
    for number in range(3):
        runs.start(f"{number}.run", Echo(pause_seconds=0.01), Request("x" * 900))
    runs.close()
    assert len(told) == 3 and runs.in_flight == 0


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals.")
def test_traces_are_whole_however_the_server_is_ended(end: signal.Signals, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen([sys.executable, "-m", "tests.slow_server", str(port), str(tmp_path)], cwd=ROOT)
    try:
        in_flight = None
        until = time.monotonic() + 60
        while in_flight != 1 and time.monotonic() < until:
            try:
                in_flight = httpx.get(f"http://127.0.0.1:{port}/health", timeout=5).json()["runs_in_flight"]
            except httpx.HTTPError:
                time.sleep(0.1)
        assert in_flight == 1
        server.send_signal(end)
        assert server.wait(30) == (-signal.SIGKILL if end == signal.SIGKILL else 0)
    finally:
        server.kill()
    found = [load_trace(path).runs[0] for path in sorted(tmp_path.iterdir())]
    reasons = sorted(str(run.lanes[0].finish_reason) for run in found)
    assert reasons == (["max_new_tokens"] if end == signal.SIGKILL else ["cancelled", "max_new_tokens"])


def test_a_trace_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.jsonl"
    dump_trace(made_run(3), file)
    before = file.read_text()

    def full(self: Path, text: str, encoding: str) -> None:
        with self.open("w") as half:
            half.write(text[: len(text) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        dump_trace(made_run(9), file)
    assert file.read_text() == before and list(tmp_path.iterdir()) == [file]
