"""A run as a value: the fold of its events.

One function, `advance`, gives every event its meaning; the live page, the terminal, the benchmark,
the comparison, the export and the tests all read the result. Knows no backend and no clock.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from playground.core.decoding import Decoding
from playground.core.events import (
    BeamStep,
    Drafted,
    Event,
    Failed,
    Finished,
    Note,
    Prefilled,
    Prefilling,
    PromptRead,
    Resumed,
    Started,
    Stepped,
)


@dataclass(slots=True)
class Lane:
    """One continuation of the prompt."""

    index: int
    first_decoding: Decoding
    resumed: list[Resumed] = field(default_factory=list)
    steps: list[Stepped] = field(default_factory=list)
    drafts: list[Drafted] = field(default_factory=list)
    beams: list[BeamStep] = field(default_factory=list)
    finished: Finished | None = None
    failed: Failed | None = None

    @property
    def decoding(self) -> Decoding:
        """The settings that act now, or acted last."""
        return self.resumed[-1].decoding if self.resumed else self.first_decoding

    def decoding_at(self, step: int) -> Decoding:
        """The settings under which token number `step` was chosen, whether they held once or for long."""
        begin, decoding = 0, self.first_decoding
        for event in self.resumed:
            if event.step <= step:
                begin, decoding = event.step, event.decoding
        now = decoding.at(step - begin)
        return replace(now, once=False) if now.once else now

    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return self.finished is not None or self.failed is not None

    @property
    def token_ids(self) -> list[int]:
        """Ids of the chosen tokens, the stop token and withheld ones included."""
        return [step.token.id for step in self.steps]

    @property
    def text(self) -> str:
        """The answer as a reader sees it; while the lane runs, what has been released."""
        if self.finished is not None:
            return self.finished.text
        text = "".join(step.text for step in self.steps)
        return text[: max(0, len(text) - self.steps[-1].held_characters)] if self.steps else ""

    @property
    def finish_reason(self) -> str | None:
        """Why the lane ended, `error` after a failure, None while it runs."""
        if self.failed is not None:
            return "error"
        return self.finished.reason if self.finished is not None else None

    def step_texts(self) -> list[str]:
        """What each step adds to the decoded text; joined they are the decoding of all ids."""
        texts = [step.text for step in self.steps]
        if self.finished is not None and self.finished.tail and texts:
            texts[-1] += self.finished.tail
        return texts

    def withheld(self, step: int) -> bool:
        """Whether a stop string took text of this step away."""
        count = self.finished.withheld_steps if self.finished is not None else 0
        return step >= len(self.steps) - count


@dataclass(slots=True)
class Run:
    """Everything known of one run. `events` are kept in order: a trace is these."""

    events: list[Event] = field(default_factory=list)
    started: Started | None = None
    prefilling: Prefilling | None = None
    prefilled: Prefilled | None = None
    prompt_read: PromptRead | None = None
    lanes: list[Lane] = field(default_factory=list)
    failed: Failed | None = None

    @property
    def id(self) -> str:
        """The run's id, empty before it has started."""
        return self.started.run if self.started is not None else ""

    @property
    def done(self) -> bool:
        """Whether every lane has ended, or the run as a whole has failed."""
        return self.failed is not None or (bool(self.lanes) and all(lane.done for lane in self.lanes))

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the user should know of the run, in the order in which it became known."""
        again = [event for lane in self.lanes for event in lane.resumed]
        return tuple(
            note for event in (self.started, self.prefilled, *again) if event for note in event.notes
        )

    @property
    def prompt_ids(self) -> list[int]:
        """Ids of the prompt, as the model read them."""
        return [token.id for token in self.started.prompt] if self.started is not None else []


def advance(run: Run, event: Event) -> Run:
    """Give `run` one more event, in place, and return it.

    Raises `IndexError`, and leaves the run as it was, for a lane that the run does not have.
    """
    match event:
        case Started():
            run.started = event
            run.lanes = [Lane(i, decoding) for i, decoding in enumerate(event.request.lanes)]
        case Prefilling():
            run.prefilling = event
        case Prefilled():
            run.prefilled = event
        case PromptRead():
            run.prompt_read = event
        case Resumed():
            _lane(run, event.lane).resumed.append(event)
        case Stepped():
            _lane(run, event.lane).steps.append(event)
        case Drafted():
            _lane(run, event.lane).drafts.append(event)
        case BeamStep():
            _lane(run, event.lane).beams.append(event)
        case Finished():
            _lane(run, event.lane).finished = event
        case Failed(lane=None):
            run.failed = event
        case Failed(lane=int(index)):
            _lane(run, index).failed = event
    run.events.append(event)
    return run


def fold(events: Iterable[Event]) -> Run:
    """All of `events` as one run."""
    run = Run()
    for event in events:
        advance(run, event)
    return run


def cancellations(run: Run, seconds: float) -> list[Finished]:
    """The events that end every lane still open, as a stop `seconds` after the start does."""
    return [
        Finished(run.id, lane.index, "cancelled", "".join(lane.step_texts()), seconds)
        for lane in run.lanes
        if not lane.done
    ]


def _lane(run: Run, index: int) -> Lane:
    if not 0 <= index < len(run.lanes):
        raise IndexError(f"the run has no lane {index}")
    return run.lanes[index]
