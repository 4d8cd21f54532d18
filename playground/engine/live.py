"""The state of a run while it runs: lanes, the rows of the batch they sit in, the cache, the logits.

Holds tensors, so nothing here outlives the run. Knows no events' consumers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from playground.core.decoding import Decoding
from playground.engine.pipeline import SamplingStage, build
from playground.engine.text import StopStrings, TextStream
from playground.engine.vocabulary import Vocabulary


@dataclass(slots=True)
class LiveLane:
    """One lane: its settings, what it has chosen, and its text so far."""

    index: int
    decoding: Decoding
    stages: tuple[SamplingStage, ...]
    later_stages: tuple[SamplingStage, ...]
    text: TextStream
    stops: StopStrings
    ids: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """Tokens chosen so far."""
        return len(self.ids)

    @property
    def forced(self) -> int | None:
        """The id that the next step takes, whatever its settings make of it."""
        return self.decoding.forced[self.steps] if self.steps < len(self.decoding.forced) else None

    def next_stages(self) -> tuple[SamplingStage, ...]:
        """What acts on the next step's logits."""
        return self.stages if self.steps <= len(self.decoding.forced) else self.later_stages


def open_lane(
    index: int,
    decoding: Decoding,
    tokenizer: Any,
    vocabulary: Vocabulary,
    prompt_ids: Sequence[int],
    first_step: int = 0,
) -> LiveLane:
    """A lane that has chosen nothing yet; the last `first_step` of the ids are earlier runs' output.

    Its text goes on from theirs: a character or a stop string may have begun in it.
    """
    prompt_tokens = len(prompt_ids) - first_step
    stages = build(decoding, prompt_tokens)
    text = TextStream(tokenizer, vocabulary, prompt_ids[:prompt_tokens])
    before = text.go_on(prompt_ids[prompt_tokens:])
    return LiveLane(
        index,
        decoding,
        stages,
        build(decoding.at(len(decoding.forced) + 1), prompt_tokens) if decoding.once else stages,
        text,
        StopStrings(decoding.stop, before),
    )


@dataclass(slots=True)
class Live:
    """The run between two forwards. `lanes[row]` is the lane in that row of the batch.

    Until the prompt's row is repeated for the lanes, `rows` is 1 and stands for all of them.
    """

    prompt_ids: tuple[int, ...]
    lanes: list[LiveLane]
    cache: Any
    logits: torch.Tensor | None = None
    processed: torch.Tensor | None = None
    rows: int = 1

    def cached_ids(self, tokens: int) -> list[tuple[int, ...]]:
        """For each row of a cache of `tokens` positions, the ids that they were computed from."""
        return [(*self.prompt_ids, *lane.ids)[:tokens] for lane in self.lanes[: self.rows]]


class LiveView:
    """What a callback sees of the live step, valid during the call only.

    `raw_logits` and `processed_logits` are (lanes, vocabulary) in fp32, `lanes` maps their rows to
    lane numbers, `cache` is the running transformers cache. At prefill there is one row, which all
    lanes share, and nothing processed yet. After the call every one is None.
    """

    def __init__(self, live: Live) -> None:
        self.lanes: tuple[int, ...] | None = tuple(lane.index for lane in live.lanes)
        self.raw_logits = live.logits
        self.processed_logits = live.processed
        self.cache = live.cache

    def close(self) -> None:
        """End of the call: let go of the tensors."""
        self.lanes = self.raw_logits = self.processed_logits = self.cache = None
