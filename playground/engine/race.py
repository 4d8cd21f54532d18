"""One greedy run with the KV cache and the same without it, step by step in turn.

Both sides are ordinary runs of `decode.stream`; this file takes their steps alternately, so that neither
is favoured, compares the logits behind each step, and leaves the other side's time out of each clock.
Knows no page.
"""

import logging
import secrets
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, cast

import torch

from playground.core.control import Control
from playground.core.events import Event, Stepped
from playground.core.race import WITH, WITHOUT, Item, Race, Ticked, follow, result
from playground.core.request import Request
from playground.engine.cache import new_cache
from playground.engine.decode import stream
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.opening import open_run
from playground.engine.room import require_room

POSITIONS_LIMIT = 4096
"""Of prompt and answer together: without a cache every step reads all of them anew, in one forward."""

_PROBE_TOKENS = 24
_OTHER_MODEL = {"float32": 0.02}
_OTHER_MODEL_16_BIT = 0.5
"""Largest logit difference, as a share of the logits' spread, that rounding can explain."""

_log = logging.getLogger(__name__)


def race(model: LoadedModel, request: Request, *, control: Control | None = None) -> Iterator[Item]:
    """Run `request`, one greedy lane, with and without the cache; yields the events of both runs (their
    ids end in `.cached` and `.uncached`), a tick after each pair of steps, and the result.

    Raises `RequestError` or `InvalidSetting` before the first item: for a request that cannot be run, and
    for a model that does not work without its cache. Both sides are warmed up by then.
    """
    request = _opened(model, request)
    assert request.prompt_ids is not None
    model.turns.take(lambda: _probe(model, request.prompt_ids or ()))
    return _items(_Side(model, request, True), _Side(model, request, False), model, control or Control())


def _opened(model: LoadedModel, request: Request) -> Request:
    run = request.run or secrets.token_urlsafe(12)
    request, _ = open_run(model, replace(request, run=run, parent=None))
    if len(request.lanes) != 1 or not request.lanes[0].greedy:
        raise RequestError("A race is one greedy run with and without the KV cache; give one greedy lane.")
    assert request.prompt_ids is not None
    positions = len(request.prompt_ids) + request.lanes[0].max_new_tokens
    if positions > POSITIONS_LIMIT:
        raise RequestError(
            f"A race is held over at most {POSITIONS_LIMIT:,} tokens of prompt and answer, not {positions:,}; "
            "shorten them."
        )
    require_room(model, len(request.prompt_ids), 1, cached=False)
    return request


@torch.inference_mode()
def _probe(model: LoadedModel, prompt_ids: tuple[int, ...]) -> None:
    """Warm both ways up on the prompt's beginning, and refuse a model that needs its cache."""
    text = (prompt_ids * _PROBE_TOKENS)[:_PROBE_TOKENS]
    ids = torch.tensor([text], device=model.device)
    cache = new_cache(model.module)
    model.forward(ids[:, :-1], cache)
    cached = model.forward(ids[:, -1:], cache)[0]
    try:
        uncached = model.forward(ids, None)[0]
    except Exception as error:  # whatever a model's own code raises
        _log.exception("A forward without a cache failed.")
        raise RequestError(
            f"This model does not run without its KV cache ({error}); nothing was run: race another model."
        ) from None
    allowed = _OTHER_MODEL.get(model.facts.dtype, _OTHER_MODEL_16_BIT)
    spread = float(cached.clamp_min(-1e4).std())
    if not _difference(cached, uncached) <= allowed * spread:  # also where it is not a number
        raise RequestError(
            "This model answers differently with its KV cache off, by more than rounding explains; nothing was "
            "run: race another model."
        )
    model.warm = True


def _difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Largest absolute difference; equal infinities (impossible candidates) differ by nothing."""
    return float((one - other).abs().masked_fill(one == other, 0).max())


class _Side(Control):
    """One of the two runs, made when its turn first comes, with the logits behind its latest step.

    It is the control of its own run: stopped and held as the race is, and its clock leaves out the time
    in which the other side had its turn.
    """

    def __init__(self, model: LoadedModel, request: Request, cached: bool) -> None:
        super().__init__()
        self.request = replace(request, cached=cached, run=request.run + (WITH if cached else WITHOUT))
        self.logits: torch.Tensor | None = None
        self.latest: Stepped | None = None
        self.done = False
        self._model, self._race = model, Control()
        self._events: Generator[Event, None, None] | None = None
        self._left_seconds: float | None = None

    @property
    def stopped(self) -> bool:
        """As the race."""
        return self._race.stopped

    def held_seconds(self) -> float:
        """The other side's turns, and the time in which nobody watches."""
        away = time.perf_counter() - self._left_seconds if self._left_seconds is not None else 0.0
        self._left_seconds = None
        return away + self._race.held_seconds()

    def turn(self, race: Control) -> Iterator[Event]:
        """Events up to the next chosen token, or to the end."""
        self.latest = self.logits = None
        self._race = race
        if self._events is None:
            events = stream(self._model, self.request, callbacks=[self], control=self)
            self._events = cast(Generator[Event, None, None], events)
        for event in self._events:
            if isinstance(event, Stepped):
                self.latest = event
                self._left_seconds = time.perf_counter()
            yield event
            if self.latest is not None:
                return
        self.done = True

    def close(self) -> None:
        """Nothing more is wanted of this side."""
        if self._events is not None:
            self._events.close()

    def on_step(self, event: Stepped, live: Any) -> None:
        """Keep the row behind the step until it has been compared."""
        self.logits = live.raw_logits[0].clone()


def _items(cached: _Side, uncached: _Side, model: LoadedModel, control: Control) -> Iterator[Item]:
    race, sides = Race(), [cached, uncached]
    try:
        while not all(side.done for side in sides):
            for side in sides:
                for event in side.turn(control):
                    yield _noted(race, event)
            if cached.latest is not None and uncached.latest is not None:
                yield _noted(race, _tick(race, cached, uncached, model))
            sides.reverse()
        race.raced = result(race)
        yield race.raced
    finally:
        for side in sides:
            side.close()


def _noted(race: Race, item: Any) -> Any:
    follow(race, item)
    return item


def _tick(race: Race, cached: _Side, uncached: _Side, model: LoadedModel) -> Ticked:
    """Compare the step that both have made; nothing once they read different texts."""
    assert cached.latest is not None and uncached.latest is not None
    step = cached.latest.step
    if any(tick.equal is False for tick in race.ticks):
        return Ticked(step, None, None)
    one, other = cached.logits, uncached.logits
    assert one is not None and other is not None
    difference = model.turns.take(lambda: _difference(one, other))
    cached.logits = uncached.logits = None
    return Ticked(step, cached.latest.token.id == uncached.latest.token.id, float(f"{difference:.6g}"))
