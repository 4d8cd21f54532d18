"""A run that goes on from a step of another one, told as one run: what is kept, then what is new.

The engine continues a run as one of its own, whose prompt holds the tokens kept. Here its events become
those of the whole answer: the steps that were kept first, then numbers, text and clock that go on from them.
Knows records only.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from playground.core.decoding import Decoding
from playground.core.events import Event, Failed, Finished, Prefilled, Prefilling, Resumed, Started, Stepped
from playground.core.run import Run


@dataclass(slots=True)
class Joined:
    """The first `step` tokens of one lane of `parent`, and whatever comes after them."""

    parent: Run
    step: int
    lane: int = 0
    _decoding: Decoding | None = None
    _new: list[str] = field(default_factory=list)
    """The texts of the steps that came after."""

    def told(self, event: Event) -> Iterator[Event]:
        """What an event of the continuing run is in the run as a whole."""
        match event:
            case Started():
                yield from self._kept(event)
            case Prefilling():
                pass  # the first tokens of the answer are on the page already
            case Prefilled():
                yield self._resumed(event)
            case Stepped():
                self._new.append(event.text)
                yield replace(
                    event, step=event.step + self.step,
                    start_seconds=event.start_seconds + self._seconds,
                    end_seconds=event.end_seconds + self._seconds,
                )  # fmt: skip
            case Finished():
                yield replace(self._whole(event), seconds=event.seconds + self._seconds)
            case Failed():
                yield replace(event, seconds=event.seconds + self._seconds)
            case _:
                yield event

    @property
    def _seconds(self) -> float:
        """The clock of the parent when its last kept token was chosen."""
        steps, prefilled = self.parent.lanes[self.lane].steps[: self.step], self.parent.prefilled
        if steps:
            return steps[-1].end_seconds
        return prefilled.end_seconds if prefilled is not None else 0.0

    def _whole(self, event: Finished) -> Finished:
        """The end of both: a stop string may have begun in what was kept, and takes that away too."""
        kept = [step.text for step in self.parent.lanes[self.lane].steps[: self.step]]
        before, new = "".join(kept), "".join(self._new)
        if event.stop_string is None or not self._new:
            return replace(event, text=before + event.text)
        first = len(before + new) - len(self._new[-1]) - len(event.stop_string) + 1
        place = (before + new).find(event.stop_string, max(0, first))
        if not 0 <= place < len(before):
            return replace(event, text=before + event.text)
        pieces = [*kept, *self._new]
        return replace(event, text=before[:place], withheld_steps=steps_reaching_past(pieces, place))

    def _kept(self, event: Started) -> Iterator[Event]:
        first, lane = self.parent.started, self.parent.lanes[self.lane]
        assert first is not None
        self._decoding = event.request.lanes[0]
        request = replace(first.request, run=event.run, lanes=(lane.first_decoding,))
        yield replace(first, run=event.run, request=request, lane=None)
        if self.parent.prefilled is not None:
            yield replace(self.parent.prefilled, run=event.run)
        if self.parent.prompt_read is not None:
            yield replace(self.parent.prompt_read, run=event.run)
        for again in lane.resumed:
            if again.step < self.step:
                yield replace(again, run=event.run, lane=0)
        for step in lane.steps[: self.step]:
            yield replace(step, run=event.run, lane=0)

    def _resumed(self, event: Prefilled) -> Resumed:
        assert self._decoding is not None
        return Resumed(
            event.run, 0, self.step, self._decoding, event.tokens_computed, event.tokens_reused,
            event.start_seconds + self._seconds, event.end_seconds + self._seconds,
            parent=self.parent.id, saved_seconds=self._saved(event.tokens_reused), notes=event.notes,
        )  # fmt: skip

    def _saved(self, reused_tokens: int) -> float | None:
        first = self.parent.prefilled
        if first is None or not first.tokens_computed or first.warm_up:
            return None
        return round(reused_tokens * (first.end_seconds - first.start_seconds) / first.tokens_computed, 6)


def steps_reaching_past(pieces: Sequence[str], place: int) -> int:
    """How many trailing steps, which wrote `pieces`, end after character `place` of the joined text."""
    end, count = sum(map(len, pieces)), 0
    for piece in reversed(pieces):
        if end <= place:
            break
        count += 1
        end -= len(piece)
    return count
