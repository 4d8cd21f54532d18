"""Backends and a service without a model, for handlers and endpoints."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from playground.backends.hosted import Runs
from playground.backends.protocol import BackendError
from playground.core.control import Control
from playground.core.decoding import validated
from playground.core.events import Event, Finished, Prefilled, Started, Stepped
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Candidate, Token
from playground.ui.models import Models
from playground.ui.session import Tab
from playground.ui.streaming import Service

FACTS = ModelFacts("tests/none", None, "cpu", "float32", 100, 1000, kv_bytes_per_token=8)
TAB = Tab("0123456789abcdef" * 2)


class Echo:
    """Answers with the characters of the prompt, one a step; refuses what an engine refuses."""

    def __init__(self, pause_seconds: float = 0.0) -> None:
        self.pause_seconds = pause_seconds
        self.forwards = 0
        self.forgotten: list[str] = []

    def facts(self) -> ModelFacts:
        return FACTS

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        if not prompt:
            raise BackendError("The prompt is empty; type something for the model to continue.")
        return [Token(ord(c), c, c.encode().hex()) for c in prompt], [True] * len(prompt)

    def forget(self, run: str) -> None:
        self.forgotten.append(run)

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        lanes = tuple(replace(validated(lane), seed=lane.seed or 5) for lane in request.lanes)
        prompt, own = self.tokenize(request.prompt, chat=request.chat, system=request.system)
        run = request.run
        yield Started(run, replace(request, lanes=lanes), FACTS, tuple(prompt), tuple(own))
        yield Prefilled(run, len(prompt), 0, 0.0, 0.1, len(prompt), 8, 8)
        for step, token in enumerate(prompt[: lanes[0].max_new_tokens]):
            control.held_seconds()
            if control.wait(self.pause_seconds):
                break
            self.forwards += 1
            for lane in range(len(lanes)):
                yield _stepped(run, lane, step, token, len(prompt))
        reason = "cancelled" if control.stopped else "max_new_tokens"
        for lane in range(len(lanes)):
            yield Finished(run, lane, reason, request.prompt, 1.0)


def _stepped(run: str, lane: int, step: int, token: Token, prompt_tokens: int) -> Stepped:
    tokens = prompt_tokens + step
    return Stepped(
        run, lane, step, tokens, token, token.text, 1, -0.5, 1.0, 0.5, "drawn", (Candidate(token, -0.5, 1.0),),
        0.0, 1.0, 0.0, 1, 1.0, (), 0.1, 0.2, tokens, 8 * tokens, 8 * tokens, 1, tokens - 1,
        kv_predicted_bytes=8 * tokens,
    )  # fmt: skip


@pytest.fixture
def tab() -> Tab:
    return TAB


@pytest.fixture
def echo() -> type[Echo]:
    return Echo


@pytest.fixture
def serviced() -> Iterator[Callable[..., Service]]:
    """`serviced(backend)` or `serviced(loader=...)`: the service of a page."""
    made: list[Service] = []

    def service(backend: Any = None, loader: Any = None) -> Service:
        models = Models(loader or (lambda name, report: backend), "tests/none", ("tests/none", "tests/other"))
        made.append(Service(models, Runs()))
        return made[-1]

    yield service
    for one in made:
        one.runs.stop(TAB.key("run"))


@pytest.fixture
def packets() -> Callable[..., list[dict[str, Any]]]:
    return lambda values: [json.loads(value) for value in values]


@pytest.fixture
def gate() -> threading.Event:
    return threading.Event()
