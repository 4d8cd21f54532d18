"""Steps far into a text: every way goes on from a cache that holds all of it but the last token.

The text is read once for each way, before anything is timed; what is timed is the time between two tokens.
Knows no rounds.
"""

from dataclasses import replace
from inspect import signature
from time import perf_counter
from typing import Any

import torch
from transformers import DynamicCache, StoppingCriteriaList

from playground.bench.contenders import Task, Timed
from playground.core.events import Stepped
from playground.core.request import Parent, Request
from playground.engine.cache import forward
from playground.engine.decode import stream
from playground.engine.model import LoadedModel
from playground.engine.room import PREFILL_CHUNK_TOKENS


class GrownGenerate:
    """`generate` over a cache of its own, wound back to the same place after each call."""

    def __init__(self) -> None:
        self._cache: Any = None

    def __call__(self, model: LoadedModel, task: Task) -> Timed:
        """Make the task's tokens."""
        times: list[float] = model.turns.take(lambda: self._make(model, task))
        return Timed(len(times) - 1, times[-1] - times[0])

    @torch.inference_mode()
    def _make(self, model: LoadedModel, task: Task) -> list[float]:
        prompt, clock = torch.tensor([task.ids], device=model.device), _Clock()
        if self._cache is None:
            self._cache = DynamicCache(config=model.module.config)
            for chunk in torch.split(prompt[:, :-1], PREFILL_CHUNK_TOKENS, dim=1):
                forward(model.module, chunk, self._cache)
        model.module.generate(
            **{_keyword(model.module): self._cache}, inputs=prompt, attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=task.tokens, min_new_tokens=task.tokens, pad_token_id=0,
            stopping_criteria=StoppingCriteriaList([clock]),
        )  # fmt: skip
        self._cache.crop(-task.tokens)
        return clock.times


def _keyword(module: Any) -> str:
    return (
        "cache" if "cache" in signature(type(module).forward).parameters else "past_key_values"
    )  # before 5.24


class _Clock:
    """Notes when each token is there, and never stops."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """False for every row."""
        self.times.append(perf_counter())
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


class GrownRun:
    """The engine's loop with everything recorded, each run going on from the one before at the same place."""

    def __init__(self) -> None:
        self._runs = 0

    def __call__(self, model: LoadedModel, task: Task) -> Timed:
        """Make the task's tokens."""
        name, before = (f"grown {len(task.ids)} {self._runs + n}" for n in (1, 0))
        request = Request(
            prompt_ids=task.ids, lanes=(replace(task.decoding, max_new_tokens=task.tokens),), run=name,
            parent=Parent(before, 0) if self._runs else None,
        )  # fmt: skip
        self._runs += 1
        times = [perf_counter() for event in stream(model, request) if isinstance(event, Stepped)]
        return Timed(len(times) - 1, times[-1] - times[0])
