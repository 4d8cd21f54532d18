"""Every handler of the page, private ones too, asked directly with what no page would send."""

import json
import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from playground.backends.hosted import Runs
from playground.backends.policy import Policy
from playground.core.request import Request
from playground.ui.app import build, free_port, launch
from playground.ui.models import Models
from playground.ui.session import Tab
from tests.ui.conftest import Echo

SECRET = "the words of somebody else"
MINE, OTHER = Tab("a" * 32), Tab("b" * 32)
OURS = re.compile(r"[/\\]playground[/\\]\w+[/\\]")
REFUSED = re.compile(r"^gradio\.exceptions\.\w*Error", re.MULTILINE)
"""A sentence for whoever asked: gradio's about its own fields, or ours about a setting."""
EACH = 3
DEEP: Any = []
for _ in range(40):
    DEEP = [DEEP]

JUNK: tuple[Any, ...] = (
    None, True, -1, 1e308, "", "x", "9" * 400, "y" * 200_000, [], {}, [None] * 300, {"run": {"run": 1}}, DEEP,
    {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}, "\ud800", "{" * 900, "../../etc/passwd",
)  # fmt: skip


def asking(token: str, **more: Any) -> str:
    return json.dumps({"session": token, "language": "en", "wish": 1} | more)


@pytest.fixture(scope="module")
def runs() -> Runs:
    """One ended run of another tab."""
    runs = Runs()
    run = runs.start(OTHER.key("run"), Echo(), Request(SECRET, run="theirs"))
    assert run.ended(10)
    return runs


@pytest.fixture(scope="module")
def page(first_port: int, runs: Runs) -> Iterator[Any]:
    models = Models(lambda name, report: Echo(), "tests/none", open_names=False)
    demo = build(models, runs=runs, policy=Policy(open=False))
    launch(demo, "127.0.0.1", free_port("127.0.0.1", first_port), quiet=True, prevent_thread_lock=True)
    yield demo
    demo.close()


@pytest.fixture(scope="module")
def client(page: Any) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=page.local_url, timeout=60) as client:
        yield client


def answered(client: httpx.Client, fn_index: int, data: Any) -> list[dict[str, Any]]:
    """All that the queue says of one call; none where it was refused before it came there."""
    session = secrets.token_hex(8)
    body = json.dumps({"data": data, "fn_index": fn_index, "session_hash": session, "event_data": None})
    json_type = {"content-type": "application/json"}
    joined = client.post("/gradio_api/queue/join", content=body, headers=json_type)
    assert "Traceback" not in joined.text
    if joined.status_code != 200:
        assert joined.status_code in (400, 404, 413, 422, 429), joined.text
        return []
    told = []
    with client.stream("GET", "/gradio_api/queue/data", params={"session_hash": session}) as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                told.append(json.loads(line[5:]))
                if told[-1]["msg"] in ("process_completed", "close_stream"):
                    break
    return told


def handlers(page: Any) -> list[tuple[int, Any]]:
    return [(number, fn) for number, fn in page.fns.items() if fn.fn is not None]


def calls(page: Any) -> Iterator[tuple[int, Any, list[Any]]]:
    """For each handler some of the junk, as every argument, and as all but the tab; then another tab's run."""
    for number, fn in handlers(page):
        count = len(fn.inputs)
        for turn in range(EACH if count else 1):
            junk = JUNK[(number + turn * 5) % len(JUNK)]
            last = junk if turn % 2 else asking(MINE.token, run=junk if isinstance(junk, str) else "x")
            yield number, fn, [*[junk] * max(count - 1, 0), *[last] * bool(count)]
        if count:
            wish = asking(MINE.token, run="theirs", action="back", what="prompt", step=0)
            yield number, fn, [*["theirs"] * (count - 1), wish]
            yield number, fn, [json.loads(wish)] * count


def test_whatever_is_sent_no_handler_breaks_or_tells_of_another_tabs_run(
    page: Any, client: httpx.Client, runs: Runs, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = list(calls(page))
    assert len({number for number, _, _ in asked}) > 100
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda call: answered(client, call[0], call[2]), asked))
    told = capfd.readouterr().err.split("Traceback (most recent call last)")[1:]
    assert [text for text in told if OURS.search(text) and not REFUSED.search(text)] == []
    outputs = [
        message for messages in answers for message in messages if message["msg"] == "process_completed"
    ]
    assert len(outputs) > 0.5 * len(asked)
    assert SECRET not in json.dumps(answers)
    kept = runs.get(OTHER.key("run"), "theirs")
    assert kept is not None and kept.done


def test_a_call_that_is_too_long_is_refused_before_it_is_understood(page: Any) -> None:
    long = httpx.post(f"{page.local_url}gradio_api/queue/join", content=b"[" * (48 * 2**20 + 1), timeout=60)
    assert long.status_code == 413 and "48 MiB" in long.text


def test_the_queue_takes_no_handler_that_is_none(page: Any) -> None:
    for number in (-1, 10**9, max(page.fns) + 1):
        body = {"data": [], "fn_index": number, "session_hash": "x"}
        assert httpx.post(f"{page.local_url}gradio_api/queue/join", json=body).status_code in (
            400,
            404,
            422,
            500,
        )
