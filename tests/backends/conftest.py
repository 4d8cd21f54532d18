"""Runs and backends for tests, made by hand: no model, no clock but the recorded one."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from playground.core.control import Control
from playground.core.decoding import GREEDY
from playground.core.events import Event, Finished, Prefilled, Started, Stepped
from playground.core.request import ModelFacts, Request
from playground.core.run import Run, fold
from playground.core.tokens import Candidate, Token

FACTS = ModelFacts("tests/none", None, "cpu", "float32", vocabulary=100, context=1000)


def stepped(run: str, lane: int, step: int, seconds: float = 0.0) -> Stepped:
    token = Token(step, f" {step}", "20")
    return Stepped(
        run, lane, step, 3 + step, token, token.text, 1, -0.5, 1.0, None, "argmax",
        (Candidate(token, -0.5, 1.0),), 0.0, 1.0, 0.0, 1, 1.0, (), seconds, seconds,
        3 + step, None, None, 1, 2 + step,
    )  # fmt: skip


def whole_run(steps: int, lanes: int = 1, run: str = "recorded", step_seconds: float = 0.0) -> list[Event]:
    """The events of a finished run; each step takes `step_seconds` on the recorded clock."""
    request = Request("a b c", (GREEDY,) * lanes, run=run)
    events: list[Event] = [
        Started(run, request, FACTS, (Token(1, "a"), Token(2, " b"), Token(3, " c"))),
        Prefilled(run, 3, 0, 0.0, 0.0, 3, None, None),
    ]
    for step in range(steps):
        events += [stepped(run, lane, step, step * step_seconds) for lane in range(lanes)]
    text = "".join(f" {step}" for step in range(steps))
    seconds = max(0, steps - 1) * step_seconds
    return events + [Finished(run, lane, "max_new_tokens", text, seconds) for lane in range(lanes)]


class Scripted:
    """A backend that makes `steps` steps, one a `go()` where `by_hand`, and counts its forwards."""

    def __init__(self, steps: int = 5, by_hand: bool = False, fails_with: Exception | None = None) -> None:
        self.steps, self.fails_with = steps, fails_with
        self.forwards = 0
        self.closed = threading.Event()
        self.forgotten: list[str] = []
        self._turns = threading.Semaphore(0) if by_hand else None

    def go(self, steps: int = 1) -> None:
        assert self._turns is not None
        self._turns.release(steps)

    def facts(self) -> ModelFacts:
        return FACTS

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        raise AssertionError("no test of this ring tokenizes")

    def forget(self, run: str) -> None:
        self.forgotten.append(run)

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        try:
            run = Run()
            for event in whole_run(self.steps):
                if isinstance(event, Stepped):
                    control.held_seconds()
                    while self._turns and not control.stopped and not self._turns.acquire(timeout=0.005):
                        control.held_seconds()
                    if control.stopped:
                        yield Finished(request.run, 0, "cancelled", "", 0.0)
                        return
                    self.forwards += 1
                if self.fails_with is not None and isinstance(event, Finished):
                    raise self.fails_with
                event = replace(event, run=request.run)
                run.events.append(event)
                yield event
        finally:
            self.closed.set()


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture
def record() -> Callable[..., Run]:
    """A finished run, as `record(steps, lanes=1, run=..., step_seconds=...)`."""
    return lambda *args, **kwargs: fold(whole_run(*args, **kwargs))
