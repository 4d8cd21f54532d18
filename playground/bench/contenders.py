"""The ways to make the same tokens that the benchmark compares.

Same model, dtype, prompt and settings for all; every way computes on the model's own thread. Knows the
engine and transformers' own `generate`, and nothing of rounds or clocks.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from transformers import TextIteratorStreamer

from playground.core.decoding import Decoding
from playground.core.draws import uniform
from playground.core.request import Request
from playground.engine.cache import new_cache
from playground.engine.decode import stream
from playground.engine.draw import pick, survive
from playground.engine.model import LoadedModel
from playground.engine.pipeline import build


@dataclass(frozen=True, slots=True)
class Task:
    """What every contender of a section makes: `tokens` new ones after the prompt `ids`."""

    ids: tuple[int, ...]
    decoding: Decoding
    tokens: int


@dataclass(frozen=True, slots=True)
class Timed:
    """What a way says itself of its steps, where its wall clock would count something else too."""

    tokens: int
    seconds: float


Way = Callable[[LoadedModel, Task], Timed | None]

STREAMED = "generate + TextIteratorStreamer"
PLAIN = "generate"


@dataclass(frozen=True, slots=True)
class Contender:
    """A way, how many times the task's tokens it makes, and whom its ratios are taken against."""

    run: Way
    continuations: int = 1
    against: tuple[str, ...] = (STREAMED,)


def streamed(model: LoadedModel, task: Task) -> None:
    """`generate` in a thread with a `TextIteratorStreamer` read here, as its documentation shows.

    It computes on the thread that loaded the model: a new one would bring a second pool of OpenMP
    workers, and take twice as long for it.
    """
    streamer = TextIteratorStreamer(model.tokenizer, skip_prompt=True)
    work = partial(model.module.generate, **_options(model, task), streamer=streamer)
    worker = threading.Thread(target=model.turns.take, args=(work,))
    worker.start()
    _drain(streamer)
    worker.join()


def generated(model: LoadedModel, task: Task, **more: Any) -> None:
    """`generate` alone: nothing is seen before the end."""
    model.turns.take(partial(model.module.generate, **_options(model, task), **more))


def with_scores(model: LoadedModel, task: Task) -> None:
    """`generate` that keeps every step's logits and scores, as programs that show probabilities do."""
    generated(model, task, output_scores=True, output_logits=True, return_dict_in_generate=True)


def bare(model: LoadedModel, task: Task) -> None:
    """The same forward, stages and draw as the engine's loop, and no record of anything."""
    model.turns.take(lambda: _bare(model, task))


def recorded(model: LoadedModel, task: Task) -> None:
    """The engine's loop: top 20, both probabilities, entropies, stages, KV bytes at every step."""
    _drain(stream(model, _request(task, 1)))


def lanes(model: LoadedModel, task: Task, count: int = 4) -> None:
    """Several lanes from one prefill in one batch, each recorded in full."""
    _drain(stream(model, _request(task, count)))


def in_turn(model: LoadedModel, task: Task, count: int = 4) -> None:
    """The same lanes, each as a run of its own, one after another."""
    for lane in _request(task, count).lanes:
        _drain(stream(model, Request(prompt_ids=task.ids, lanes=(lane,))))


def _request(task: Task, count: int) -> Request:
    lane = replace(task.decoding, max_new_tokens=task.tokens)
    return Request(prompt_ids=task.ids, lanes=tuple(replace(lane, seed=seed) for seed in range(count)))


def _options(model: LoadedModel, task: Task) -> dict[str, Any]:
    prompt = torch.tensor([task.ids], device=model.device)
    options = {
        "inputs": prompt, "attention_mask": torch.ones_like(prompt), "pad_token_id": 0,
        "max_new_tokens": task.tokens, "min_new_tokens": task.tokens, "do_sample": not task.decoding.greedy,
    }  # fmt: skip
    if task.decoding.greedy:
        return options
    return options | {"temperature": task.decoding.temperature, "top_p": task.decoding.top_p, "top_k": 0}


@torch.inference_mode()
def _bare(model: LoadedModel, task: Task) -> None:
    cache, stages = new_cache(model.module), build(task.decoding, len(task.ids))
    batch = torch.tensor([task.ids], device=model.device)
    for step in range(task.tokens):
        scores = model.forward(batch, cache)
        for stage in stages:
            scores = stage.apply(batch, scores)
        token = scores[0].argmax() if task.decoding.greedy else pick(survive(scores[0]), uniform(1, step))
        batch = token.reshape(1, 1)
        int(token)  # whoever shows the text needs it on the host


def _drain(items: Iterable[Any]) -> None:
    for _ in items:
        pass
