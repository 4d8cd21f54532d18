"""llama.cpp as a contender: asked directly over HTTP, and through the backend that makes records of its answers.

Knows its own API as far as a plain stream of tokens with probabilities goes.
"""

import json
from dataclasses import replace
from time import perf_counter
from typing import Any

import httpx

from playground.backends.native import NativeBackend
from playground.backends.remote.llamacpp import WINDOW_TOKENS, sampling
from playground.bench.contenders import Task, Timed
from playground.core.control import Control
from playground.core.events import Stepped
from playground.core.request import Request
from playground.engine.model import LoadedModel

TOP_N = 20
DIRECT, THROUGH = "llama.cpp, asked directly", "llama.cpp backend, every record"


def asked(backend: NativeBackend, model: LoadedModel, task: Task) -> Timed:
    """The plain stream, each line read as JSON; an answer may end by itself."""
    body: dict[str, Any] = {
        "prompt": list(task.ids), "stream": True, "n_predict": task.tokens, "n_probs": TOP_N, "cache_prompt": True,
        "return_tokens": True, **sampling(task.decoding, WINDOW_TOKENS),
    }  # fmt: skip
    root, headers = backend.door
    count, began = 0, perf_counter()
    with httpx.stream("POST", f"{root}/completion", json=body, headers=headers, timeout=60) as answer:
        for line in answer.iter_lines():
            if line.startswith("data:") and json.loads(line[5:]).get("completion_probabilities"):
                count += 1
    return Timed(count, perf_counter() - began)


def through(backend: NativeBackend, model: LoadedModel, task: Task) -> Timed:
    """A run of the backend, its events made and thrown away."""
    lane, began = replace(task.decoding, max_new_tokens=task.tokens), perf_counter()
    events = backend.stream(Request(prompt_ids=task.ids, lanes=(lane,), top_n=TOP_N), Control())
    count = sum(isinstance(event, Stepped) for event in events)
    return Timed(count, perf_counter() - began)
