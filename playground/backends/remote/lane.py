"""One lane of a remote run: its text, its stops, and the record of each token that came.

Knows no stream and no server.
"""

from codecs import getincrementaldecoder
from dataclasses import dataclass, field, replace

from playground.backends.remote.answers import Answer
from playground.backends.remote.processed import processed
from playground.core.decoding import Decoding
from playground.core.events import Distribution, Finished, FinishReason, Origin, Stepped
from playground.core.kv import CacheSpec
from playground.core.request import ModelFacts
from playground.core.tokens import Candidate
from playground.engine.text import StopStrings

_Utf8 = getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class Setting:
    """What all lanes of a run share."""

    run: str
    facts: ModelFacts
    distribution: Distribution
    spec: CacheSpec | None
    prompt_tokens: int


@dataclass
class RemoteLane:
    """What has come of one lane; `last_seconds` is the clock of its latest token."""

    index: int
    decoding: Decoding
    setting: Setting
    last_seconds: float = 0.0
    text: str = ""
    pieces: list[str] = field(default_factory=list)
    done: bool = False

    def __post_init__(self) -> None:
        self._stops = StopStrings(self.decoding.stop)
        self._utf8 = _Utf8("replace")

    def add(self, answer: Answer, seconds: float, kv_share: float | None, reused: int) -> Stepped:
        """The record of one token that came at `seconds`."""
        token, step, setting = answer.token, len(self.pieces), self.setting
        piece = "" if token.special else self._utf8.decode(bytes.fromhex(token.bytes))
        self.pieces.append(piece)
        self.text += piece
        place = next(i for i, (one, _) in enumerate(answer.top) if one.id == token.id)
        logprobs = [value for _, value in answer.top]
        found = processed(logprobs, place, setting.facts.vocabulary, self._beyond(), answer.forced)
        inexact = found.inexact
        if place == len(logprobs) - 1 and answer.beyond:
            inexact = ("raw_rank", *(["raw_logprob"] * answer.forced), *inexact)
        held, began = setting.prompt_tokens + step, self.last_seconds if step else seconds
        self.last_seconds = seconds
        return Stepped(
            setting.run, self.index, step, held, token, piece, place + 1, answer.logprob,
            found.probabilities[place], None, self._origin(answer),
            tuple(
                Candidate(one, value, p, removed)
                for (one, value), p, removed in zip(
                    answer.top, found.probabilities, found.removed_by, strict=True
                )
            ),
            None, found.raw_entropy_bits, found.entropy_bits, found.kept_count, found.kept_mass, found.stages,
            began, seconds, held, None, None,
            1 if step else held - reused, held - 1 if step else reused,
            held_characters=self._stops.held(self.text, len(piece)),
            kv_predicted_bytes=setting.spec.used_bytes(held) if setting.spec else None,
            distribution=setting.distribution, inexact=inexact, server_kv_share=kv_share,
        )  # fmt: skip

    def _origin(self, answer: Answer) -> Origin:
        if answer.forced:
            return "forced"
        return "argmax" if self.decoding.greedy else "drawn"

    def _beyond(self) -> Decoding:
        """The settings that have not acted yet on what the server sends."""
        if self.setting.distribution == "after_temperature" and not self.decoding.greedy:
            return replace(self.decoding, temperature=1.0, repetition_penalty=1.0)
        return self.decoding

    def stopped(self) -> FinishReason | None:
        """Why the lane ends after its latest token, as far as this side knows."""
        if self._stops.found(self.text, len(self.pieces[-1])):
            return "stop_string"
        return "max_new_tokens" if len(self.pieces) >= self.decoding.max_new_tokens else None

    def finished(self, reason: FinishReason, seconds: float) -> Finished:
        """The lane's last event."""
        stop = None
        if reason == "stop_string":
            stop = self._stops.found(self.text, len(self.pieces[-1]))
        tail = self._utf8.decode(b"", final=True)
        self.done = True
        text = self.text + tail if stop is None else self.text[: stop[0]]
        withheld = self._reaching_past(stop[0]) if stop is not None else 0
        return Finished(self.setting.run, self.index, reason, text, seconds, tail, stop and stop[1], withheld)

    def _reaching_past(self, place: int) -> int:
        end, count = len(self.text), 0
        for piece in reversed(self.pieces):
            if end <= place:
                break
            count += 1
            end -= len(piece)
        return count
