"""What the page asks about other settings and texts: what is answered, and the one sentence for everything hostile."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from playground.core.control import Control
from playground.core.decoding import Decoding
from playground.core.request import Request
from playground.core.run import Run
from playground.core.tokens import Candidate, Token
from playground.core.what_if import OtherChoice, RunWhatIf, Source, StepWhatIf, TextOdds, TokenOdds
from playground.ui.asking import answered
from playground.ui.session import Tab
from playground.ui.streaming import Service

OTHER = Token(98, "b")
KEPT = Source(True, held_bytes=8192, limit_bytes=2**24)


def judging(echo: type[Any]) -> Any:
    """A backend that remembers the settings it was asked about."""

    class Judging(echo):  # type: ignore[misc]
        asked: list[Any]

        def step_waterfall(self, *_: Any) -> None: ...

        def prompt_read(self, *_: Any) -> None: ...

        def what_if(
            self, run: Run, lane: int, step: int, decoding: Decoding, owner: str, control: Control
        ) -> StepWhatIf:
            self.asked = [run.id, lane, step, decoding, owner]
            return StepWhatIf(OTHER, 0.5, 0.25, 3, None, 1.5, (Candidate(OTHER, -1.0, 0.25),), KEPT)

        def what_if_run(
            self, run: Run, lane: int, decoding: Decoding, owner: str, control: Control
        ) -> RunWhatIf:
            return RunWhatIf(3, (OtherChoice(1, OTHER, 0.25, False),), KEPT)

        def text_odds(self, run: Run, lane: int, step: int, text: str, control: Control) -> TextOdds:
            self.asked = [run.id, lane, step, text]
            return TextOdds((TokenOdds(OTHER, 2, -math.inf, 0.0),), KEPT)

    return Judging()


@pytest.fixture
def ask(echo: type[Any], serviced: Callable[..., Service], tab: Tab) -> Callable[..., Any]:
    """`ask(**data)`: the answer about a run of three tokens that has ended; `ask.backend` was asked."""
    backend = judging(echo)
    service = serviced(backend)
    list(service.models.ready())
    run = service.runs.start(tab.key("run"), backend, Request("abc", (Decoding(seed=5),), chat=False))
    list(run.follow(0))

    def ask(**data: Any) -> dict[str, Any]:
        asked = {"session": tab.token, "run": run.id, "lane": 0, "step": 1, "key": "k"} | data
        found: dict[str, Any] = json.loads(answered(service, asked))["answer"]
        return found

    ask.backend = backend  # type: ignore[attr-defined]
    return ask


def test_settings_and_texts_are_asked_of_the_model_that_made_the_run(ask: Any) -> None:
    found = ask(what="whatif", settings={"temperature": 1.5, "top_k": 4.0, "seed": 9, "forced": [1]})
    assert (found["token"][1], found["kept_count"], found["key"], found["step"]) == ("b", 3, "k", 1)
    assert found["source"]["kept"] and found["candidates"] == [[[98, "b", "", False], -1.0, 0.25, None]]
    decoding = ask.backend.asked[3]
    assert (decoding.temperature, decoding.top_k, decoding.seed, decoding.forced) == (1.5, 4, 5, ())
    over = ask(what="whatif_run", settings={"top_p": 0.5})
    assert over["others"] == [{"step": 1, "token": [98, "b", "", False], "probability": 0.25, "sure": False}]
    text = ask(what="text", text=" Berlin ")
    assert ask.backend.asked[3] == " Berlin " and text["tokens"][0]["rank"] == 2
    json.dumps(text, allow_nan=False)  # an impossible token too


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"settings": {"temperature": "hot"}}, "temperature must be a number"),
        ({"settings": {"temperature": math.nan}}, "temperature must be a number"),
        ({"settings": {"top_p": [0.5] * 1000}}, "top_p must be a number"),
        ({"settings": {"top_k": True}}, "top_k must be a whole number"),
        ({"settings": {"strategy": "beam"}}, "strategy must be one of"),
        ({"settings": "x" * 10_000}, "settings to try were not sent"),
        ({"settings": {}, "lane": 7}, "settings to try were not sent"),
        ({"settings": {}, "run": "another-session"}, "no longer kept here"),
        ({"settings": {}, "session": "f" * 32}, "no longer kept here"),
        ({"settings": {}, "session": None}, "no longer kept here"),
        ({"what": "text", "text": "x" * 10_000}, "has 10,000; shorten it"),
        ({"what": "text", "text": None}, "must be text"),
    ],
)
def test_whatever_is_sent_gets_an_answer_or_one_sentence(ask: Any, data: dict[str, Any], words: str) -> None:
    found = ask(**({"what": "whatif"} | data))
    assert words in found["error"] and found["error"].count(". ") == 0 and len(found["error"]) < 300
    chinese = ask(**({"what": "whatif", "language": "zh"} | data))["error"]
    assert chinese != found["error"]


def test_a_key_that_is_none_is_not_given_back(ask: Any) -> None:
    for key in ("x" * 401, 5, None, ["k"]):
        assert ask(what="whatif", settings={}, key=key)["key"] == ""
