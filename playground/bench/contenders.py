"""The ways to make the same tokens that the benchmark compares.

Same model, dtype, prompt and settings for all. Knows the engine and transformers' own `generate`,
and nothing of rounds or clocks.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, Self

import torch
from transformers import TextIteratorStreamer

from playground.core.decoding import GREEDY, Decoding
from playground.core.draws import uniform
from playground.core.request import Request
from playground.engine.cache import new_cache
from playground.engine.decode import stream
from playground.engine.draw import pick, survive
from playground.engine.load import load_model
from playground.engine.model import LoadedModel
from playground.engine.pipeline import build

PROMPT = "The sea is"
SETTINGS = {"greedy": GREEDY, "sampled": Decoding(temperature=0.7, top_p=0.9, seed=1)}
LANES = 4

Way = Callable[[LoadedModel, Decoding, int], None]


def streamed(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """`generate` in a thread with a `TextIteratorStreamer` read here, as its documentation shows.

    It computes on the thread that loaded the model: a new one would bring a second pool of OpenMP
    workers, and take twice as long for it.
    """
    streamer = TextIteratorStreamer(model.tokenizer, skip_prompt=True)
    options = _options(model, decoding, tokens) | {"streamer": streamer}
    work = partial(model.module.generate, **options)
    worker = threading.Thread(target=model.turns.take, args=(work,))
    worker.start()
    _drain(streamer)
    worker.join()


def generated(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """`generate` alone: nothing is seen before the end."""
    model.turns.take(partial(model.module.generate, **_options(model, decoding, tokens)))


def bare(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """The same forward, stages and draw as the engine's loop, and no record of anything."""
    model.turns.take(lambda: _bare(model, decoding, tokens))


def recorded(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """The engine's loop: top 20, both probabilities, entropies, stages, KV bytes at every step."""
    _drain(stream(model, _request(model, decoding, tokens, 1)))


def lanes(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """Four lanes from one prefill in one batch, each recorded in full."""
    _drain(stream(model, _request(model, decoding, tokens, LANES)))


def in_turn(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """The same four lanes, each as a run of its own, one after another."""
    for lane in _request(model, decoding, tokens, LANES).lanes:
        _drain(stream(model, Request(prompt_ids=_ids(model), lanes=(lane,))))


@dataclass(frozen=True, slots=True)
class Contender:
    """A way, how many continuations it makes, and whom its ratios are taken against."""

    run: Way
    continuations: int = 1
    against: tuple[str, ...] = ("generate + TextIteratorStreamer",)


CONTENDERS: dict[str, Contender] = {
    "generate + TextIteratorStreamer": Contender(streamed),
    "generate": Contender(generated),
    "own loop without telemetry": Contender(bare),
    "own loop, full telemetry": Contender(
        recorded, against=("generate + TextIteratorStreamer", "generate", "own loop without telemetry")
    ),
    "four runs, one after another": Contender(in_turn, LANES),
    "four lanes in one batch": Contender(lanes, LANES, against=("four runs, one after another",)),
}


@dataclass(frozen=True, slots=True)
class Bench:
    """The contenders over one loaded model, which stops at no token: all make as many."""

    model: LoadedModel
    contenders: Mapping[str, Contender]

    @classmethod
    def load(cls, model: str | None, device: str, dtype: str) -> Self:
        """Load the model; raises as `load_model`."""
        loaded = load_model(model, device=device, dtype=dtype)
        loaded.stop_ids = frozenset()
        return cls(loaded, CONTENDERS)

    def rate(self, name: str, settings: str, tokens: int) -> float:
        """Tokens a second, over all its continuations, of one run of `tokens` tokens each."""
        contender = self.contenders[name]
        began = perf_counter()
        contender.run(self.model, SETTINGS[settings], tokens)
        if self.model.facts.device.startswith("cuda"):
            torch.cuda.synchronize()
        return contender.continuations * tokens / (perf_counter() - began)


def _ids(model: LoadedModel) -> tuple[int, ...]:
    return tuple(model.tokenizer(PROMPT)["input_ids"])


def _request(model: LoadedModel, decoding: Decoding, tokens: int, count: int) -> Request:
    lane = replace(decoding, max_new_tokens=tokens)
    return Request(prompt_ids=_ids(model), lanes=tuple(replace(lane, seed=seed) for seed in range(count)))


def _options(model: LoadedModel, decoding: Decoding, tokens: int) -> dict[str, Any]:
    prompt = torch.tensor([_ids(model)], device=model.device)
    options = {
        "inputs": prompt, "attention_mask": torch.ones_like(prompt), "pad_token_id": 0,
        "max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": not decoding.greedy,
    }  # fmt: skip
    if decoding.greedy:
        return options
    return options | {"temperature": decoding.temperature, "top_p": decoding.top_p, "top_k": 0}


@torch.inference_mode()
def _bare(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    ids = _ids(model)
    cache, stages = new_cache(model.module), build(decoding, len(ids))
    batch = torch.tensor([ids], device=model.device)
    for step in range(tokens):
        scores = model.forward(batch, cache)
        for stage in stages:
            scores = stage.apply(batch, scores)
        token = scores[0].argmax() if decoding.greedy else pick(survive(scores[0]), uniform(1, step))
        batch = token.reshape(1, 1)
        int(token)  # whoever shows the text needs it on the host


def _drain(items: Iterable[Any]) -> None:
    for _ in items:
        pass
