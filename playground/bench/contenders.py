"""The ways to make the same tokens that the benchmark compares.

Same model, dtype, prompt and settings for all. Knows the engine and transformers' own `generate`,
and nothing of rounds or clocks.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch
from transformers import TextIteratorStreamer

from playground.core.decoding import GREEDY, Decoding
from playground.core.draws import uniform
from playground.core.request import Request
from playground.engine.cache import forward, new_cache
from playground.engine.choice import pick, survive
from playground.engine.decode import stream
from playground.engine.model import LoadedModel
from playground.engine.pipeline import build

PROMPT = "The sea is"
SETTINGS = {"greedy": GREEDY, "sampled": Decoding(temperature=0.7, top_p=0.9, seed=1)}
LANES = 4

Way = Callable[[LoadedModel, Decoding, int], None]


def streamed(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """`generate` in a thread with a `TextIteratorStreamer` read here, as its documentation shows."""
    streamer = TextIteratorStreamer(model.tokenizer, skip_prompt=True)
    options = _options(model, decoding, tokens) | {"streamer": streamer}
    worker = threading.Thread(target=model.module.generate, kwargs=options)
    worker.start()
    _drain(streamer)
    worker.join()


def generated(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """`generate` alone: nothing is seen before the end."""
    model.module.generate(**_options(model, decoding, tokens))


def bare(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """The same forward, stages and draw as the engine's loop, and no record of anything."""
    model.turns.take(lambda: _bare(model, decoding, tokens))


def recorded(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """The engine's loop: top 20, both probabilities, entropies, stages, KV bytes at every step."""
    _drain(stream(model, _request(model, decoding, tokens, 1)))


def lanes(model: LoadedModel, decoding: Decoding, tokens: int) -> None:
    """Four lanes from one prefill in one batch, each recorded in full."""
    _drain(stream(model, _request(model, decoding, tokens, LANES)))


WAYS: dict[str, tuple[Way, int]] = {
    "generate + TextIteratorStreamer": (streamed, 1),
    "generate": (generated, 1),
    "own loop without telemetry": (bare, 1),
    "own loop, full telemetry": (recorded, 1),
    "four lanes in one batch": (lanes, LANES),
}
"""Name to the way and how many continuations it makes; the first is the reference of the ratios."""


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
        scores = forward(model.module, batch, cache)
        for stage in stages:
            scores = stage.apply(batch, scores)
        token = scores[0].argmax() if decoding.greedy else pick(survive(scores[0]), uniform(1, step))
        batch = token.reshape(1, 1)
        int(token)  # whoever shows the text needs it on the host


def _drain(items: Iterable[Any]) -> None:
    for _ in items:
        pass
