"""A bench for forwards: builds caches, times single forwards, keeps to a time, and can be stopped.

Every forward is a turn of its own and is timed inside the turn, with the device's queue empty before and
after, so that other people's runs go on and stand in no time. What is read is a fixed sentence over and
over: no time depends on the words, except that a mixture of experts wakes fewer of them. Knows no curve.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from time import monotonic, perf_counter
from typing import Any, ParamSpec, TypeVar

import torch

from playground.core.control import Control
from playground.core.decoding import InvalidSetting
from playground.core.experiment import Conditions
from playground.core.refusal import Refused
from playground.engine.cache import fork, keep_rows, new_cache, tokens_held
from playground.engine.model import LoadedModel
from playground.engine.probe import settle
from playground.engine.room import PREFILL_CHUNK_TOKENS, Extent, Room

_SENTENCE = "One token after another is read, and nothing of it is written down. "
_WARM_UP_TOKENS = 24
STEPS = 3
"""Decode steps at one visit of a place; the middle one stands exactly there."""

_log = logging.getLogger(__name__)


class CannotMeasure(Refused):
    """An experiment that broke off or was stopped; the message is one sentence."""


class Stopped(CannotMeasure):
    """It was stopped before there was anything to show."""

    def __init__(self) -> None:
        super().__init__("The experiment was stopped before its end, so nothing is shown of it.")


Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


def in_a_sentence(
    experiment: Callable[Parameters, Iterator[Value]],
) -> Callable[Parameters, Iterator[Value]]:
    """A stop ends it, without a value; whatever a model's own code raises becomes `CannotMeasure`."""

    @wraps(experiment)
    def guarded(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Iterator[Value]:
        try:
            yield from experiment(*args, **kwargs)
        except Stopped:
            return
        except Refused:
            raise
        except Exception as error:
            _log.exception("An experiment broke off.")
            short = isinstance(error, MemoryError | torch.OutOfMemoryError) or "memory" in str(error)
            reason = "there is not enough memory for it" if short else f"the model failed ({error})"
            raise CannotMeasure(f"The experiment broke off: {reason}; nothing was changed.") from error

    return guarded


class Trial:
    """One experiment on `model`, which has `seconds_limit` for its forwards; raises `InvalidSetting`."""

    def __init__(self, model: LoadedModel, control: Control | None, seconds_limit: float) -> None:
        if not isinstance(seconds_limit, int | float) or not seconds_limit > 0:  # false for NaN too
            raise InvalidSetting("seconds_limit must be a number above 0.")
        self.model, self._control = model, control or Control()
        self._ends = monotonic() + seconds_limit
        self._ids = _ids(model)
        self._warm_before, self._warm_up_seconds = model.warm, 0.0
        self.context: int = model.facts.context or 2**31

    def conditions(self) -> Conditions:
        """What this is measured on; after `warm_up`."""
        facts = self.model.facts
        threads = torch.get_num_threads() if self.model.device.type == "cpu" else None
        return Conditions(
            facts.name, facts.device_name or facts.device, facts.dtype, threads, self._warm_up_seconds,
            self._warm_before,
        )  # fmt: skip

    def warm_up(self) -> None:
        """One short prefill and a decode step, apart from everything that is counted."""
        cache, seconds, _ = self.prefill(min(_WARM_UP_TOKENS, self.context - 1))
        self._warm_up_seconds = seconds + self.step(cache)[0]
        self.model.warm = True

    @property
    def stopped(self) -> bool:
        """Asked before each forward: waits while nobody watches."""
        self._ends += self._control.held_seconds()
        return self._control.stopped

    def has_time(self, seconds: float = 0.0) -> bool:
        """Whether so many seconds more are within the limit."""
        return monotonic() + seconds <= self._ends

    def has_room(self, tokens: int, rows: int = 1) -> bool:
        """Whether a cache of this size, and a copy of it, fit into memory."""
        try:
            Room(self.model).require(Extent(0, 0), Extent(tokens, 2 * rows))
        except MemoryError:
            return False
        return True

    def ids(self, tokens: int, begin: int = 0) -> tuple[int, ...]:
        """The text's ids from `begin` on."""
        return tuple(self._ids[place % len(self._ids)] for place in range(begin, begin + tokens))

    def prefill(self, tokens: int, cache: Any = None) -> tuple[Any, float, Any]:
        """Read on in `cache` until it holds `tokens`, in the chunks of a run: cache, seconds, last logits.

        Raises `Stopped`.
        """
        cache = new_cache(self.model.module) if cache is None else cache
        seconds, logits, held = 0.0, None, tokens_held(cache)
        for begin in range(held, tokens, PREFILL_CHUNK_TOKENS):
            if self.stopped:
                raise Stopped
            chunk = self.ids(min(PREFILL_CHUNK_TOKENS, tokens - begin), begin)
            took, logits = self.model.turns.take(partial(_timed, self.model, [chunk], cache))
            seconds += took
        return cache, seconds, logits

    def step(self, cache: Any, rows: int = 1) -> tuple[float, Any]:
        """One decode step: seconds and logits. Raises `Stopped`."""
        if self.stopped:
            raise Stopped
        ids = self.ids(1, tokens_held(cache))
        return self.model.turns.take(partial(_timed, self.model, [ids] * rows, cache))

    def steps(self, cache: Any, count: int, rows: int = 1) -> list[float]:
        """Seconds of `count` decode steps."""
        return [self.step(cache, rows)[0] for _ in range(count)]

    def fork(self, cache: Any, tokens: int, rows: int = 1) -> Any | None:
        """The first `tokens` positions of `cache`, in `rows` rows; None where it cannot be cut."""
        return self.model.turns.take(lambda: _forked(cache, tokens, rows))

    def spread(self, cache: Any, rows: int) -> Any:
        """`cache` itself in `rows` rows."""
        self.model.turns.take(lambda: _spread(cache, rows))
        return cache


def chunk_ends(tokens: int) -> list[int]:
    """Where the chunks of a prefill end."""
    return [*range(PREFILL_CHUNK_TOKENS, tokens, PREFILL_CHUNK_TOKENS), tokens]


def rounds(places: Sequence[int], repeats: int) -> list[tuple[int, int]]:
    """(place, n) in turn forwards and backwards, so that a drift of the machine favours no place."""
    forwards = list(enumerate(places))
    return [pair for turn in range(repeats) for pair in (forwards if turn % 2 == 0 else forwards[::-1])]


def _ids(model: LoadedModel) -> list[int]:
    ids = model.tokenizer(_SENTENCE, add_special_tokens=False)["input_ids"]
    limit = model.facts.vocabulary
    return [id for id in ids if 0 <= id < limit] or [0]


@torch.inference_mode()
def _timed(model: LoadedModel, ids: Sequence[Sequence[int]], cache: Any) -> tuple[float, Any]:
    batch = torch.tensor(ids, device=model.device)
    settle(model.device)
    began = perf_counter()
    logits = model.forward(batch, cache)
    settle(model.device)
    return perf_counter() - began, logits


@torch.inference_mode()
def _forked(cache: Any, tokens: int, rows: int) -> Any | None:
    return fork(cache, tokens, [0] * rows)


@torch.inference_mode()
def _spread(cache: Any, rows: int) -> None:
    keep_rows(cache, [0] * rows)
