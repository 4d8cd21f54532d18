"""A request to a server as events: the same story as on this machine, told from what comes back.

Knows no API; the dialect is handed in.
"""

from collections.abc import Iterator
from time import monotonic

from playground.backends.remote.answers import Answer, Ended
from playground.backends.remote.dialect import Asked, Dialect
from playground.backends.remote.facts import known_spec
from playground.backends.remote.faults import CUT
from playground.backends.remote.lane import RemoteLane, Setting
from playground.backends.remote.streams import Came, Streams
from playground.backends.remote.usage import Usage
from playground.core.control import Control
from playground.core.events import Event, Failed, Finished, FinishReason, Note, Prefilled, Started
from playground.core.request import Request
from playground.core.tokens import Token

POLL_SECONDS = 0.1


class RemoteRun:
    """One run; `request` has its ids, seeds and run id."""

    def __init__(
        self, dialect: Dialect, usage: Usage, request: Request, prompt: list[Token], own: list[bool],
        notes: tuple[Note, ...], control: Control,
    ) -> None:  # fmt: skip
        self.dialect, self.usage, self.request, self.control = dialect, usage, request, control
        self.prompt, self.own, self.notes = prompt, own, notes
        setting = Setting(
            request.run, dialect.facts, dialect.distribution, known_spec(dialect.facts.name), len(prompt)
        )
        self.lanes = [RemoteLane(i, decoding, setting) for i, decoding in enumerate(request.lanes)]
        self.began = monotonic()
        self.reused = 0
        self.prefilled = False

    def events(self) -> Iterator[Event]:
        """The run's events, until every lane has ended or the run is stopped."""
        yield Started(
            self.request.run,
            self.request,
            self.dialect.facts,
            tuple(self.prompt),
            tuple(self.own),
            self.notes,
        )
        self.began = monotonic()
        streams = Streams(self.dialect, [self._asked(lane) for lane in self.lanes])
        try:
            while not all(lane.done for lane in self.lanes):
                self.control.held_seconds()
                if self.control.stopped:
                    yield from self._cancelled(streams)
                    return
                came = streams.next(POLL_SECONDS)
                if came is not None and not self.lanes[came[0]].done:
                    yield from self._told(came, streams)
        finally:
            for lane in self.lanes:
                streams.stop(lane.index)

    def _asked(self, lane: RemoteLane) -> Asked:
        request = self.request
        ids = request.prompt_ids if self.dialect.capabilities.prompt_ids.there else None
        return Asked(ids, request.prompt, request.chat, request.system, lane.decoding, request.top_n)

    def _told(self, came: Came, streams: Streams) -> Iterator[Event]:
        lane, found, seconds = self.lanes[came[0]], came[1], came[2] - self.began
        if isinstance(found, Answer):
            if not self.prefilled:
                yield self._prefilled(found, seconds)
            yield lane.add(found, seconds, self.usage.share(), self.reused)
            reason = lane.stopped()
            if reason is not None:
                streams.stop(lane.index)
                yield lane.finished(reason, seconds)
        elif isinstance(found, Ended):
            yield self._ended(lane, found, seconds)
        else:
            lane.done = True
            yield Failed(self.request.run, lane.index, str(found), seconds)

    def _prefilled(self, answer: Answer, seconds: float) -> Prefilled:
        """The first token has come, so the prompt has been read: the time in between is the server's."""
        self.prefilled = True
        self.reused = min(answer.timed.reused or 0, len(self.prompt))
        computed = len(self.prompt) - self.reused
        spec = known_spec(self.dialect.facts.name)
        return Prefilled(
            self.request.run, computed, self.reused, 0.0, seconds, len(self.prompt), None, None,
            kv_predicted_bytes=spec.used_bytes(len(self.prompt)) if spec else None,
        )  # fmt: skip

    def _ended(self, lane: RemoteLane, ended: Ended, seconds: float) -> Event:
        if ended.reason is None:
            lane.done = True
            return Failed(self.request.run, lane.index, CUT, seconds)
        reason: FinishReason = "stop_token" if ended.reason == "stop" else "context_limit"
        return lane.finished(reason, seconds)

    def _cancelled(self, streams: Streams) -> Iterator[Finished]:
        for lane in self.lanes:
            streams.stop(lane.index)
        seconds = monotonic() - self.began
        for lane in [lane for lane in self.lanes if not lane.done]:
            yield lane.finished("cancelled", seconds)
