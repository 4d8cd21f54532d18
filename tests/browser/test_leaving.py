"""Closing the last page of a tab frees what the server keeps of it; a reload in time finds its run again."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from playground.backends.hosted import Runs
from tests.browser.test_page import start, wait_new_run, wait_steps
from tests.ui.conftest import Echo

pytestmark = pytest.mark.browser

AMPLE_SECONDS = 60.0


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come about in time"
        time.sleep(0.05)


def test_a_closed_tab_frees_its_runs_and_a_reload_does_not(
    open_page: Any, serving: Any, recorded_folder: Any, reload: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_HEARTBEAT_INTERVAL", "0.2")  # how soon a closed page is noticed
    backend, runs = Echo(), Runs(grace_seconds=AMPLE_SECONDS)
    served = serving(lambda name, report: backend, ("tests/made",), recorded_folder, runs=runs)
    page, other = open_page(served.url), open_page(served.url)
    for shown in (page, other):
        shown.get_by_role("textbox", name="Prompt", exact=True).fill("a few words")
        start(shown)
    run, _ = wait_new_run(page, None), wait_new_run(other, None)
    wait_steps(page, 11)
    reload(page)
    wait_steps(page, 11)
    runs.grace_seconds = 0.0  # whoever had left without coming back would be dropped in the next round
    time.sleep(2.5)
    assert len(runs) == 2 and not backend.forgotten
    page.close()
    until(lambda: backend.forgotten == [run])
    assert len(runs) == 1
