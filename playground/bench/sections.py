"""What is measured: each section is one task and the contenders that do it.

Knows the ways and the loaded model; nothing of rounds and medians.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import torch

from playground.bench.contenders import (
    PLAIN,
    STREAMED,
    Contender,
    Task,
    Timed,
    bare,
    generated,
    in_turn,
    lanes,
    recorded,
    streamed,
    with_scores,
)
from playground.bench.grown import GrownGenerate, GrownRun
from playground.core.cost import decode_cost
from playground.core.decoding import GREEDY, Decoding
from playground.engine import int8
from playground.engine.costing import cost_shape
from playground.engine.load import load_model
from playground.engine.model import LoadedModel
from playground.engine.probe import probe

PROMPT = "The sea is"
SETTINGS = {"greedy": GREEDY, "sampled": Decoding(temperature=0.7, top_p=0.9, seed=1)}
PREFILL_TOKENS = (128, 1024, 4096)
GROWN_TOKENS = (128, 1024, 4096, 8192)
GROWN_STEPS = 16

CEILING = "every weight read once, at the bandwidth measured here"
IN_8_BIT = "own loop, full telemetry, int8"
OWN, BARE = "own loop, full telemetry", "own loop without telemetry"


@dataclass(frozen=True, slots=True)
class Section:
    """A task and who does it; `reading` counts the tokens read instead of those made."""

    name: str
    task: Task
    contenders: Mapping[str, Contender]
    reading: bool = False

    def rate(self, name: str, model: LoadedModel) -> float:
        """Tokens a second, over all its continuations, of the task done once."""
        contender = self.contenders[name]
        began = perf_counter()
        timed = contender.run(model, self.task)
        if model.facts.device.startswith("cuda"):
            torch.cuda.synchronize()
        seconds = perf_counter() - began
        if timed is not None:
            return timed.tokens / timed.seconds
        tokens = len(self.task.ids) if self.reading else self.task.tokens
        return contender.continuations * tokens / seconds


def decode(model: LoadedModel, tokens: int) -> Iterator[Section]:
    """One continuation, and four, in both settings; the first is what telemetry costs and what it is worth."""
    for name, decoding in SETTINGS.items():
        task = Task(_ids(model), decoding, tokens)
        turn, batch = "four runs, one after another", "four lanes in one batch"
        top = ceiling(model, task)
        own = (STREAMED, PLAIN, BARE, *top)
        yield Section(
            name,
            task,
            {
                STREAMED: Contender(streamed),
                PLAIN: Contender(generated),
                "generate + output_scores + output_logits": Contender(with_scores),
                **top,
                BARE: Contender(bare),
                OWN: Contender(recorded, against=own),
                turn: Contender(in_turn, 4),
                batch: Contender(lanes, 4, against=(turn,)),
            },
        )


def six_lanes(model: LoadedModel, tokens: int) -> Iterator[Section]:
    """Six lanes in one batch against one."""
    task = Task(_ids(model), GREEDY, tokens)
    batch = Contender(partial(lanes, count=6), 6, against=(OWN,))
    yield Section("greedy", task, {OWN: Contender(recorded, against=(OWN,)), "six lanes in one batch": batch})


def prefill(model: LoadedModel, tokens: int) -> Iterator[Section]:
    """A prompt read, and the first token after it."""
    for length in _lengths(model, PREFILL_TOKENS, 1):
        task = Task(_text(model, length), GREEDY, 1)
        ways = {PLAIN: Contender(generated, against=(PLAIN,)), OWN: Contender(recorded, against=(PLAIN,))}
        yield Section(f"prefill of {length:,}", task, ways, reading=True)


def growth(model: LoadedModel, tokens: int) -> Iterator[Section]:
    """Steps far into a text."""
    for length in _lengths(model, GROWN_TOKENS, GROWN_STEPS):
        task = Task(_text(model, length), GREEDY, GROWN_STEPS)
        ways = {
            PLAIN: Contender(GrownGenerate(), against=(PLAIN,)),
            OWN: Contender(GrownRun(), against=(PLAIN,)),
        }
        yield Section(f"after {length:,} tokens", task, ways)


def eight_bit(model: LoadedModel, tokens: int) -> Iterator[Section]:
    """The same model with its matrices in eight bits, loaded beside it."""
    rounded = load_model(model.facts.name, device="cpu", dtype=int8.NAME)
    rounded.stop_ids = frozenset()
    batch = "four lanes in one batch, int8"
    ways = {
        STREAMED: Contender(streamed),
        OWN: Contender(recorded),
        IN_8_BIT: Contender(lambda _, task: recorded(rounded, task), against=(STREAMED, OWN)),
        batch: Contender(lambda _, task: lanes(rounded, task), 4, against=(IN_8_BIT,)),
    }
    yield Section("greedy", Task(_ids(model), GREEDY, tokens), ways)


def llamacpp(model: LoadedModel, tokens: int) -> Iterator[Section]:
    """llama.cpp on the model's GGUF file, asked directly and through its backend, with as many probabilities."""
    from playground.backends.native import open_native
    from playground.bench.llamacpp import DIRECT, THROUGH, asked, through
    from playground.engine.sources import gguf

    backend = open_native(gguf(model.facts.name), torch.get_num_threads())
    try:
        ways = {
            STREAMED: Contender(streamed),
            DIRECT: Contender(partial(asked, backend)),
            THROUGH: Contender(partial(through, backend), against=(STREAMED, DIRECT)),
        }
        yield Section("greedy", Task(_ids(model), GREEDY, tokens), ways)
    finally:
        backend.close()


Sections = Callable[[LoadedModel, int], Iterator[Section]]

SECTIONS: dict[str, Sections] = {
    "decode": decode, "lanes": six_lanes, "prefill": prefill, "growth": growth, "int8": eight_bit,
    "llamacpp": llamacpp,
}  # fmt: skip

PEERS = {"generate": ("decode", "lanes", "prefill", "growth", "int8"), "llamacpp": ("llamacpp",)}
"""The sections that measure against each of those whom others use."""


def _ids(model: LoadedModel) -> tuple[int, ...]:
    return tuple(model.tokenizer(PROMPT)["input_ids"])


def _text(model: LoadedModel, length: int) -> tuple[int, ...]:
    """Any ids will do: what they say does not change how long a forward takes."""
    return tuple(id * 7919 % (model.facts.vocabulary - 1) + 1 for id in range(length))


def _lengths(model: LoadedModel, wanted: tuple[int, ...], more: int) -> list[int]:
    """Those that the model reads; one short of its context counts as the context."""
    context = model.facts.context or max(wanted)
    return sorted({min(length, context - more) for length in wanted if length - more <= context})


def ceiling(model: LoadedModel, task: Task) -> dict[str, Contender]:
    """The rate at which the weights could be read, as a contender that takes just that long; none if unknown."""
    shape = cost_shape(model)
    if shape is None:
        return {}
    seconds = decode_cost(shape, len(task.ids)).weight_bytes / probe(model).bytes_per_second
    return {CEILING: Contender(lambda model, task: Timed(1, seconds))}
