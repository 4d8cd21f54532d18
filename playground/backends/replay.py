"""A recorded run as a backend: the same events again, at the recorded pace, a set one, or at once.

Needs no model and no tokenizer. Knows no page.
"""

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic
from typing import Literal

from playground.backends.protocol import BackendError
from playground.core.control import Control
from playground.core.events import Event, Failed, Finished, Prefilled, Prefilling, Started, Stepped
from playground.core.race import WITH, WITHOUT, Item, Race, Raced, Ticked
from playground.core.record import items
from playground.core.request import ModelFacts, Request
from playground.core.run import Run, advance, cancellations
from playground.core.tokens import Token
from playground.core.trace import Trace

_BROKEN_OFF = "The record breaks off before the run ended; everything it holds is shown."

Pace = float | Literal["recorded"] | None
"""Tokens a second in each lane, the recorded clock, or None for at once."""


class ReplayBackend:
    """Plays one recorded run, whatever is asked of it; of a trace of several, the first.

    Raises `BackendError` for a record without a run, or a pace that is not above 0.
    """

    def __init__(self, record: Trace | Run, pace: Pace = "recorded") -> None:
        runs = [record] if isinstance(record, Run) else record.runs
        if not runs or runs[0].started is None:
            raise BackendError("This record holds no run, so there is nothing to replay.")
        if isinstance(pace, int | float) and not 0 < pace < float("inf"):
            raise BackendError(f"The pace of a replay must be above 0 tokens a second, not {pace!r}.")
        self._run, self._started, self._pace = runs[0], runs[0].started, pace

    def facts(self) -> ModelFacts:
        """The model that made the record."""
        return self._started.model

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """Always refused: a record holds no tokenizer."""
        raise BackendError("A recorded run has no tokenizer; load a model to see another prompt's tokens.")

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        """The recorded events, under the id of `request` where it has one.

        A stop ends every lane as cancelled; a record that breaks off ends with a `Failed` saying so.
        """
        shown, began = Run(), monotonic()
        for due_seconds, event in self._timed():
            if isinstance(event, Prefilling | Prefilled | Stepped):
                began += control.held_seconds()
            if control.wait(began + due_seconds - monotonic()):
                break
            advance(shown, _renamed(event, request.run))
            yield shown.events[-1]
        if not shown.done and control.stopped:
            yield from cancellations(shown, monotonic() - began)
        elif not shown.done:
            yield Failed(shown.id or request.run, None, _BROKEN_OFF, monotonic() - began)

    def forget(self, run: str) -> None:
        """Nothing is kept for a recorded run."""

    def _timed(self) -> Iterator[tuple[float, Event]]:
        """Each event with the second after the start at which it is due."""
        clock, steps = 0.0, [0] * len(self._run.lanes)
        for event in self._run.events:
            if self._pace == "recorded":
                clock = max(clock, _clock(event))
            elif self._pace is not None and isinstance(event, Stepped):
                steps[event.lane] += 1
                clock = max(clock, steps[event.lane] / self._pace)
            yield clock, event


class ReplayRaceBackend(ReplayBackend):
    """Plays one recorded race, at once, whatever is asked of it. Raises `BackendError` where a side lacks."""

    def __init__(self, record: Race) -> None:
        super().__init__(record.cached)
        self._race = record

    def race(self, request: Request, control: Control) -> Iterator[Item]:
        """The recorded items, under the id of `request` where it has one."""
        for item in items(self._race):
            if isinstance(item, Ticked | Raced):
                yield item
            else:
                ending = WITHOUT if item.run.endswith(WITHOUT) else WITH
                yield _renamed(item, request.run and request.run + ending)
        sides = (self._race.cached, self._race.uncached)
        for run, ending in zip(sides, (WITH, WITHOUT), strict=True):
            if not run.done:
                yield Failed(request.run + ending if request.run else run.id, None, _BROKEN_OFF, 0.0)


def _clock(event: Event) -> float:
    match event:
        case Prefilled() | Stepped():
            return event.end_seconds
        case Prefilling() | Finished() | Failed():
            return event.seconds
        case _:
            return 0.0


def _renamed(event: Event, run: str) -> Event:
    if not run:
        return event
    if isinstance(event, Started):
        return replace(event, run=run, request=replace(event.request, run=run))
    return replace(event, run=run)
