"""The loop: read the prompt once, then choose a token, append it, and run one forward for the next.

`stream` is the whole story in one screen: prefill, choose, decode step, choose, ... until every lane
has ended. It is a generator of events; whoever closes it stops the run before the next forward. It
does not wrap `generate()`, which is the reference it is tested against. Knows no page, and no text
beyond what a step adds.
"""

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import torch

from playground.core.control import Control
from playground.core.draws import uniform
from playground.core.events import Event, Failed, Finished, FinishReason, LayerKv, Prefilled, Prefilling
from playground.core.request import Request
from playground.engine.cache import measure, measure_layers, repeat_rows, tokens_held
from playground.engine.callbacks import Callbacks
from playground.engine.choice import Choice, choose, read
from playground.engine.clock import Clock
from playground.engine.live import Live, LiveLane, open_lane
from playground.engine.model import LoadedModel
from playground.engine.opening import open_run
from playground.engine.raw import raw_rows
from playground.engine.records import finished, predicted_bytes, started, stepped
from playground.engine.rewind import Opening, leave, open_cache, part
from playground.engine.room import PREFILL_CHUNK_TOKENS, Extent, NoRoom, Room

_log = logging.getLogger(__name__)


def stream(
    model: LoadedModel,
    request: Request,
    *,
    callbacks: Iterable[Any] = (),
    control: Control | None = None,
) -> Iterator[Event]:
    """Run `request` on `model`, yielding its events.

    Raises `RequestError` or `InvalidSetting` before the first event where the request cannot be
    run. A failure later (memory, a broken model) is a `Failed` event; what was made is kept.
    """
    control, clock = control or Control(), Clock(model.device)
    request, prompt = open_run(model, request)
    return _events(model, request, started(model, request, prompt), Callbacks(callbacks), control, clock)


def _events(
    model: LoadedModel,
    request: Request,
    start: Event,
    callbacks: Callbacks,
    control: Control,
    clock: Clock,
) -> Iterator[Event]:
    assert request.prompt_ids is not None
    first_step = request.parent.step if request.parent else 0
    lanes = [
        open_lane(i, decoding, model.tokenizer, model.vocabulary, request.prompt_ids, first_step)
        for i, decoding in enumerate(request.lanes)
    ]
    loop = _Loop(model, request, Live(request.prompt_ids, lanes, None), callbacks, control, clock)
    yield start
    try:
        yield from loop.prefill()
        while loop.live.lanes:
            yield from loop.step()
            yield from loop.end_lanes()
            if loop.live.lanes and not loop.may_go_on():
                yield from loop.cancel()
    except Exception as error:  # whatever a model's own code raises ends the run, not the program
        _log.exception("A run broke off.")
        yield loop.failed(error)
    finally:
        loop.hand_over()


class _Loop:
    """One run in progress; each method is one phase."""

    def __init__(
        self,
        model: LoadedModel,
        request: Request,
        live: Live,
        callbacks: Callbacks,
        control: Control,
        clock: Clock,
    ) -> None:
        self.model, self.request, self.live = model, request, live
        self.callbacks, self.control, self.clock = callbacks, control, clock
        self.room = Room(model, cached=request.cached)
        self.computed, self.reused = 0, 0

    def prefill(self) -> Iterator[Event]:
        """Read the part of the prompt that no cache holds, in chunks, once for all lanes."""
        live, ids, run = self.live, self.live.prompt_ids, self.request.run
        queued = self._queue()
        began = self.clock.seconds()
        opening = self.model.turns.take(self._open_cache)
        chunk_tokens = PREFILL_CHUNK_TOKENS if self.request.cached else len(ids)
        for begin in range(self.reused, len(ids), chunk_tokens):
            if not self.may_go_on():
                yield from self.cancel()
                return
            chunk = ids[begin : begin + chunk_tokens]
            self.model.turns.take(partial(self._forward, [chunk]))
            yield Prefilling(run, begin + len(chunk), len(ids), self.clock.seconds())
        self.computed, ended = len(ids) - self.reused, self.clock.seconds()
        kv = measure(live.cache)
        event = Prefilled(
            run, self.computed, self.reused, began, ended, kv.tokens,
            kv.used_bytes, kv.allocated_bytes, warm_up=not self.model.warm,
            kv_predicted_bytes=predicted_bytes(self.model, kv.tokens), queue_seconds=queued,
            notes=opening.notes, kv_state_bytes=kv.state_bytes,
        )  # fmt: skip
        self.model.warm = True
        self._call_back(event)
        yield event
        self.model.turns.take(self._spread)

    def step(self) -> Iterator[Event]:
        """One token for every live lane, in one turn: a decode step, except right after the prefill,
        and the choice from the logits of the last position."""
        began = self.clock.seconds()
        choices = self.model.turns.take(self._decode_and_choose)
        clock = (began, self.clock.seconds())
        kv, rows = measure(self.live.cache), len(self.live.lanes)
        positions = (self.computed, self.reused)
        events = [
            stepped(self.model, self.request, lane, choice, draw, clock, kv, rows, positions)
            for lane, (choice, draw) in zip(self.live.lanes, choices, strict=True)
        ]
        for event in events:
            self._call_back(event)
            yield event

    def end_lanes(self) -> Iterator[Event]:
        """Finish the lanes that have reached an end, and take their rows out of the batch."""
        reasons = {lane.index: self._reason(lane) for lane in self.live.lanes}
        held = self._held_by_layers() if any(reasons.values()) else ()
        for lane in [lane for lane in self.live.lanes if reasons[lane.index]]:
            yield self._finished(lane, reasons[lane.index], held)
        rows = [row for row, lane in enumerate(self.live.lanes) if not reasons[lane.index]]
        if rows and len(rows) < len(self.live.lanes) and self.request.cached:
            self.model.turns.take(partial(self._part, rows))
        if rows:
            self.live.lanes = [self.live.lanes[row] for row in rows]
        else:
            self.hand_over()
            self.live.lanes = []

    def may_go_on(self) -> bool:
        """Asked before each forward: waits while nobody watches, False once stopped."""
        self.clock.leave_out(self.control.held_seconds())
        return not self.control.stopped

    def cancel(self) -> Iterator[Event]:
        """End every lane that is left as stopped; what it has is complete up to here."""
        lanes, held = list(self.live.lanes), self._held_by_layers()
        self.hand_over()
        self.live.lanes = []
        for lane in lanes:
            yield self._finished(lane, "cancelled", held)

    def failed(self, error: BaseException) -> Event:
        """The sentence for a forward that could not be computed."""
        self.live.lanes = []
        short_of_memory = isinstance(error, MemoryError | torch.OutOfMemoryError) or "memory" in str(error)
        reason = "there is not enough memory for it" if short_of_memory else f"the model failed ({error})"
        reason = str(error) if isinstance(error, NoRoom) else reason
        message = f"The next step could not be computed: {reason}; every token up to here is kept."
        return Failed(self.request.run, None, message, self.clock.seconds())

    def hand_over(self) -> None:
        """Leave the cache to whoever continues this run, and let go of every tensor."""
        leave(self.model, self.request, self.live)
        self.live.cache = self.live.logits = self.live.processed = None

    def _queue(self) -> float:
        """Wait for the first turn; the run's clock stands still meanwhile."""
        began = self.clock.seconds()
        self.model.turns.take(lambda: None)
        waited = self.clock.seconds() - began
        self.clock.leave_out(waited)
        return round(waited, 6)

    @torch.inference_mode()
    def _open_cache(self) -> Opening:
        opening = open_cache(self.model, self.request)
        self.live.cache, self.reused = opening.cache, opening.reused_tokens
        return opening

    def _call_back(self, event: Event) -> None:
        """On the model's thread: what a callback computes would cost a second pool of threads else."""
        if self.callbacks:
            self.model.turns.take(lambda: self.callbacks.call(event, self.live))

    def _decode_and_choose(self) -> list[tuple[Choice, float | None]]:
        if self.live.lanes[0].steps and self.request.cached:
            self._forward([[lane.ids[-1]] for lane in self.live.lanes])
            self.computed, self.reused = 1, tokens_held(self.live.cache) - 1
        elif self.live.lanes[0].steps:
            texts = [(*self.live.prompt_ids, *lane.ids) for lane in self.live.lanes]
            self._forward(texts)
            self.computed, self.reused = len(texts[0]), 0
        return self._choices()

    @torch.inference_mode()
    def _forward(self, ids: Any) -> None:
        self._require_room(len(ids[0]), len(ids))
        batch = torch.tensor(ids, device=self.model.device)
        self.live.logits = self.model.forward(batch, self.live.cache)

    @torch.inference_mode()
    def _spread(self) -> None:
        rows = len(self.live.lanes)
        assert self.live.logits is not None
        if self.request.cached:
            self._require_room(0, rows)
            self.live.cache = repeat_rows(self.live.cache, rows)
        self.live.logits, self.live.rows = self.live.logits.expand(rows, -1), rows

    def _require_room(self, more_tokens: int, rows: int) -> None:
        tokens = tokens_held(self.live.cache) if self.request.cached else 0
        self.room.require(Extent(tokens, self.live.rows), Extent(tokens + more_tokens, rows))

    @torch.inference_mode()
    def _part(self, rows: list[int]) -> None:
        part(self.model, self.request, self.live, rows)
        self.live.rows = len(rows)

    @torch.inference_mode()
    def _choices(self) -> list[tuple[Choice, float | None]]:
        logits, lanes = self.live.logits, self.live.lanes
        assert logits is not None
        rows, draws = raw_rows(logits, self.request.top_n), [self._draw(lane) for lane in lanes]
        chosen = [
            choose(row, self._ids_for_stages(lane), lane.next_stages(), draw, lane.forced)
            for row, lane, draw in zip(rows, lanes, draws, strict=True)
        ]
        if self.callbacks:
            self.live.processed = torch.stack([one.processed() for one in chosen])
        used = [None if lane.forced is not None else draw for lane, draw in zip(lanes, draws, strict=True)]
        return list(zip(read(chosen), used, strict=True))

    def _draw(self, lane: LiveLane) -> float | None:
        """The uniform number of the lane's next step; None takes the most probable token."""
        if lane.decoding.greedy:
            return None
        assert lane.decoding.seed is not None
        return uniform(lane.decoding.seed, self._first_step() + lane.steps)

    def _ids_for_stages(self, lane: LiveLane) -> torch.Tensor:
        """All ids before the next one, where a stage looks at them."""
        assert self.live.logits is not None
        seen = (*self.live.prompt_ids, *lane.ids) if lane.decoding.repetition_penalty != 1 else ()
        return torch.tensor(seen, dtype=torch.long, device=self.live.logits.device)

    def _first_step(self) -> int:
        return self.request.parent.step if self.request.parent else 0

    def _reason(self, lane: LiveLane) -> FinishReason | None:
        if lane.ids[-1] in self.model.stop_ids:
            return "stop_token"
        if lane.stops.found(lane.text.text, len(lane.pieces[-1])):
            return "stop_string"
        if lane.steps >= lane.decoding.max_new_tokens:
            return "max_new_tokens"
        context = self.model.facts.context
        if context is not None and len(self.live.prompt_ids) + lane.steps > context:
            return "context_limit"
        return None

    def _held_by_layers(self) -> tuple[LayerKv, ...]:
        """Of one lane's cache; read at its end alone, since it walks over every tensor."""
        return measure_layers(self.live.cache, self.live.rows)

    def _finished(self, lane: LiveLane, reason: FinishReason | None, held: tuple[LayerKv, ...]) -> Finished:
        assert reason is not None
        event = finished(self.request.run, lane, reason, self.clock.seconds(), held)
        self._call_back(event)
        return event
