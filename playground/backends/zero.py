"""A model on ZeroGPU: each run is one call of a worker process that has a GPU for as long as it takes.

The one place that knows the platform's package `spaces` (read: its `zero/wrappers.py` and `zero/client.py` of
0.51.3). The worker is forked, so arguments and events cross pickled, and nothing else crosses: no control, no
cache. It generates ahead; Stop, Step, Pause and a pace hold back or cut off what is revealed of that. Everything
else (tokens, inspecting, judging again) is computed by the model on the CPU of the process that holds the page.
Knows no page.
"""

import re
from collections.abc import Generator, Iterator
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import count
from time import monotonic
from weakref import WeakValueDictionary

from spaces import GPU

from playground.backends.ahead import Ahead
from playground.backends.local import LocalBackend
from playground.backends.protocol import BackendError
from playground.core.control import Control
from playground.core.cost import Device
from playground.core.events import Event, Failed, Prefilled, Prefilling, Started, Stepped
from playground.core.refusal import Refused
from playground.core.request import ModelFacts, Request
from playground.core.run import Run, advance, cancellations
from playground.engine.decode import stream
from playground.engine.errors import RequestError
from playground.engine.forked import load_anew, twin
from playground.engine.model import LoadedModel
from playground.engine.opening import open_run

TWINS_LIMIT = 2
"""Models that a worker keeps on its GPU; the one used longest ago goes."""

_numbers = count(1)
_backends: "WeakValueDictionary[int, ZeroBackend]" = WeakValueDictionary()
"""What was loaded in this process, or in the one that it was forked from."""
_twins: dict[int, LoadedModel] = {}
"""In a worker: its models. A worker may serve several calls, and is never relied upon to."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The model that a worker shall run: its number in the process that forked it, else what to load."""

    number: int
    name: str
    dtype: str
    weights_bytes: int


def duration_seconds(wanted: Wanted, request: Request, prompt_tokens: int) -> int:
    """How long a GPU is asked for: an allowance with room to spare, not a measurement; shorter ones wait less.

    Ten seconds to begin with, the weights' way to the GPU at 4 GB/s, the prompt at 2,000 tokens a second; then
    for each step 20 ms, 5 ms a lane, and the weights read once at 1 TB/s.
    """
    steps = max(lane.max_new_tokens for lane in request.lanes)
    step_seconds = 0.02 + 0.005 * len(request.lanes) + wanted.weights_bytes / 1e12
    return round(10 + wanted.weights_bytes / 4e9 + prompt_tokens / 2000 + steps * step_seconds)


@GPU(duration=duration_seconds)  # type: ignore[untyped-decorator]
def generate(wanted: Wanted, request: Request, prompt_tokens: int) -> Generator[Event, None, None]:
    """The events of `request`, made by a worker; a refusal there is a `Failed`, since errors lose their text."""
    began = monotonic()
    try:
        yield from stream(_in_worker(wanted), request)
    except Refused as error:
        yield Failed(request.run, None, str(error), monotonic() - began)


class ZeroBackend(LocalBackend):
    """Runs each request in a worker on a GPU; `model` is loaded on this process's CPU."""

    def __init__(self, model: LoadedModel) -> None:
        super().__init__(model)
        self._number, self._facts = next(_numbers), model.facts
        _backends[self._number] = self

    def facts(self) -> ModelFacts:
        """The model as the last run had it: on the CPU until one has shown what the GPU is."""
        return self._facts

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        """The worker's events, revealed as `control` has it. Raises `BackendError` or `InvalidSetting` at once."""
        try:
            full, prompt = open_run(self.model, request)
        except RequestError as error:
            raise BackendError(str(error)) from None
        own, tokens = self.model.facts, len(prompt.tokens)
        wanted = Wanted(self._number, own.name, own.dtype, own.weights_bytes or 0)
        asked = replace(request, run=full.run, lanes=full.lanes)  # with the seeds that were drawn
        # The context is that of the visitor's request: the platform reads from it whose quota it is.
        return self._revealed(Ahead(lambda: generate(wanted, asked, tokens), copy_context()), control)

    def rates(self, *, measure: bool = True) -> Device | None:
        """None: between two calls there is no GPU to measure."""
        return None

    def _revealed(self, ahead: Ahead, control: Control) -> Iterator[Event]:
        shown, began, waited_seconds = Run(), monotonic(), 0.0
        try:
            for event in ahead.events(control):
                if _follows_a_forward(event, shown):
                    control.held_seconds()
                    if control.stopped:
                        break
                if isinstance(event, Started):
                    self._facts, waited_seconds = event.model, round(monotonic() - began, 6)
                if isinstance(event, Prefilled):  # for a GPU; the worker itself has nobody to wait for
                    event = replace(event, queue_seconds=waited_seconds)
                advance(shown, event)
                yield event
        except Refused:
            raise
        except Exception as error:
            refusal = _refusal(error)
            raise (refusal or error) from None
        finally:
            unseen = ahead.close()
        if not shown.done and control.stopped:
            for ended in cancellations(shown, _clock(shown)):
                yield replace(ended, forwards_wasted=unseen)


def _in_worker(wanted: Wanted) -> LoadedModel:
    """The model on this worker's GPU; moved there, or loaded, by the first call that wants it."""
    found = _twins.pop(wanted.number, None)
    if found is None:
        known = _backends.get(wanted.number)
        found = twin(load_anew(wanted.name, wanted.dtype) if known is None else known.model)
    _twins[wanted.number] = found
    while len(_twins) > TWINS_LIMIT:
        del _twins[next(iter(_twins))]
    return found


def _follows_a_forward(event: Event, shown: Run) -> bool:
    """Whether the local engine would have asked `Control` before it: not between the lanes of one step."""
    if isinstance(event, Stepped):
        return all(len(lane.steps) <= event.step for lane in shown.lanes)
    return isinstance(event, Prefilling | Prefilled)


def _clock(shown: Run) -> float:
    steps = [lane.steps[-1].end_seconds for lane in shown.lanes if lane.steps]
    return max(steps, default=shown.prefilled.end_seconds if shown.prefilled else 0.0)


_NO_ANSWER = re.compile(r"ZeroGPU|Connection closed by visitor|Unexpected end of stream|queue disconnect")
"""What the platform's client says without a title where no GPU was given."""
_LATER = re.compile(r"[Tt]ry again in (\d{1,2}:\d{2}:\d{2})\b")


def _refusal(error: Exception) -> BackendError | None:
    """The platform's own errors in plain words, told by their titles; None for any other error."""
    title = getattr(error, "title", None)
    if isinstance(error, RuntimeError) and _NO_ANSWER.search(str(error)):
        title = "ZeroGPU client error"
    if not isinstance(title, str) or not title.startswith("ZeroGPU"):
        return None
    if "quota" in title or "credits" in title:
        later = _LATER.search(str(error))
        if later is not None:
            return BackendError(
                f"Your GPU time on this Space is used up for now, so nothing was computed; it comes back in "
                f"{later[1]} (hours, minutes, seconds), and the recorded runs under Traces still play."
            )
        return BackendError(
            "The GPU time of this Space or of your account is used up for now, so nothing was computed; try again "
            "later, or log in to Hugging Face. The recorded runs under Traces still play."
        )
    if "duration" in title:
        return BackendError(
            "This run asks for more GPU time than one call gets here, so nothing was computed; ask for fewer tokens or "
            "lanes. The recorded runs under Traces still play."
        )
    if "worker" in title:
        return BackendError(
            "The GPU was taken back before the run ended; every token up to here is kept, so go on from here, or ask "
            "for fewer tokens."
        )
    return BackendError(
        "No GPU was free for this run, so nothing was computed; try again in a minute. The recorded runs under Traces "
        "still play."
    )
