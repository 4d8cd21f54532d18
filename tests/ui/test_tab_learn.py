"""The tab Learn without a browser: its material, and what a page is told of its own run."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from playground.core.control import Control
from playground.core.decoding import InvalidSetting
from playground.core.events import Event
from playground.core.lesson import lesson_request
from playground.core.scoring import Scored, Scoring
from playground.ui.session import Tab
from playground.ui.tab_learn import PLACE, _ask, _own, lesson, read_prompt
from tests.ui.conftest import FACTS

FOLDER = Path(__file__).parents[2] / "assets" / "traces" / "learn"


@pytest.fixture
def scorer(echo: Any) -> Any:
    class Scoring_(echo):  # type: ignore[misc, valid-type]
        def stream(self, request: Any, control: Control) -> Iterator[Event]:
            asked = replace(request, prompt="ab") if request.prompt_ids else request
            return super().stream(asked, control)

        def score(self, request: Any, text: str | None, *, top: int, control: Control) -> Scoring:
            tokens, _ = self.tokenize("ab", chat=False, system=None)
            return Scoring(FACTS, tuple(Scored(i, t) for i, t in enumerate(tokens)), None, 2, 0.0)

    return Scoring_()


def event(tab: Tab, **data: Any) -> Any:
    return SimpleNamespace(_data={"session": tab.token, "language": tab.language, "wish": 0, **data})


def test_the_files_are_small_and_name_no_machine() -> None:
    files = sorted(FOLDER.iterdir())
    assert len(files) == 7
    for file in files:
        text = file.read_text("utf-8")
        assert len(text.encode()) < 300_000
        assert not re.search(r"/(root|home|work|tmp|Users|mnt)/|[A-Za-z]:\\\\|\.cache|://", text)


def test_the_lesson_is_strict_json_of_real_runs() -> None:
    packet = lesson()["lesson"]
    json.dumps(packet, allow_nan=False)
    for events in packet["runs"].values():
        model = events[0]["model"]
        assert (model["name"], model["dtype"], model["device"]) == ("SmolLM2-135M-Instruct", "float32", "cpu")
    assert packet["facts"]["prompt_tokens"] == 4
    assert packet["facts"]["guess"] is not None
    ids = [token[0] for token in packet["runs"]["main"][0]["prompt"]]
    assert [token["id"] for token in packet["score"]["tokens"]] == ids
    assert packet["runs"]["temperatures"][0]["request"]["prompt_ids"] == ids
    assert [piece["text"] for piece in packet["pieces"]][-1] == "😊"
    mystery = [e for e in packet["runs"]["mystery"] if e["event"] == "stepped"]
    assert all(step["raw_rank"] == 1 for step in mystery)


def test_own_words_are_run_and_told_of(
    serviced: Callable[..., Any], scorer: Any, tab: Tab, packets: Any
) -> None:
    service = serviced(scorer)
    sent = packets(_ask(service)("tests/none", event(tab, prompt="hello")))
    run = next(p["run"] for p in sent if p.get("events"))
    assert [p["facts"]["new_tokens"] for p in sent if "facts" in p] == [5]
    told = [p[name] for p in sent for name in ("facts", "softmax", "score") if name in p]
    assert [one["run"] for one in told] == [run] * 3
    assert service.runs.latest(tab.key(PLACE)).request.lanes == lesson_request("hello").lanes


def test_a_page_that_opens_has_a_run_made_once(
    serviced: Callable[..., Any], scorer: Any, tab: Tab, packets: Any
) -> None:
    service = serviced(scorer)
    who = json.dumps({"session": tab.token, "language": "en"})
    assert not packets(_own(service)("tests/none", who)), "no model is loaded, so nothing is made"
    list(service.introduce(tab))
    first = packets(_own(service)("tests/none", who))
    again = packets(_own(service)("tests/none", who))
    assert {p["run"] for p in first if p.get("events")} == {p["run"] for p in again if p.get("events")}
    run = service.runs.latest(tab.key(PLACE)).id
    known = json.dumps({"session": tab.token, "language": "en", "run": run})
    assert not packets(_own(service)("tests/none", known)), "the page tells of it already"


def test_a_backend_that_cannot_be_asked_is_told_of_without(
    serviced: Callable[..., Any], echo: Any, tab: Tab, packets: Any
) -> None:
    sent = packets(_ask(serviced(echo()))("tests/none", event(tab, prompt="hello")))
    assert [name for p in sent for name in ("facts", "softmax", "score") if name in p] == ["facts"]


def test_refusals_are_sentences(serviced: Callable[..., Any], scorer: Any, tab: Tab, packets: Any) -> None:
    service = serviced(scorer)
    for prompt in ("", "x" * 401):
        (packet,) = [
            p for p in packets(_ask(service)("tests/none", event(tab, prompt=prompt))) if p.get("error")
        ]
        assert packet["error"].endswith(".")
    with pytest.raises(InvalidSetting, match="最多 400"):
        read_prompt({"prompt": "x" * 401}, "zh")
    assert read_prompt("nonsense", "en").prompt == ""
