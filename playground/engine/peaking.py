"""The most memory that a prefill holds, measured where the device tells and told apart by what is known.

A GPU's allocator counts its own peak. On a CPU the process's resident memory is watched while the prefill
runs, after what was freed before has been given back: the system gives it in pages, and counts whatever
other threads took meanwhile. Knows no arithmetic; that stands in `core.peak`.
"""

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import psutil
import torch

from playground.core.config import UnknownShape
from playground.core.control import Control
from playground.core.experiment import PeakMemory, Progressed
from playground.core.peak import activation_bytes, logits_bytes
from playground.core.peak import peak_memory as told_apart
from playground.engine.cache import forward_all, measure, new_cache
from playground.engine.costing import count_parameters
from playground.engine.model import LoadedModel
from playground.engine.places import count
from playground.engine.room import PREFILL_CHUNK_TOKENS, free_bytes
from playground.engine.trial import Stopped, Trial, in_a_sentence

_WATCH_SECONDS = 0.002


@in_a_sentence
def peak_memory(
    model: LoadedModel, *, tokens: int = 1024, control: Control | None = None
) -> Iterator[Progressed | PeakMemory]:
    """Memory at the peak of a prefill of `tokens`, cut to the model's context: as a run reads it, then once
    more with the logits of every position, which is measured where they fit."""
    trial = Trial(model, control, float("inf"))
    tokens = min(count("tokens", tokens), trial.context)
    trial.warm_up()
    yield Progressed(1, 3, tokens)
    weights = model.facts.weights_bytes or sum(p.nbytes for p in model.module.parameters())
    with _Watch(model.device, weights) as watch:
        cache = trial.prefill(tokens)[0]
    kept = measure(cache)
    del cache
    yield Progressed(2, 3, tokens)
    with _Watch(model.device, weights) as other:
        every = _every_row(trial, tokens)
    asked = every is not None
    del every
    yield Progressed(3, 3, tokens)
    yield told_apart(
        trial.conditions(),
        tokens,
        weights_bytes=weights,
        vocabulary=model.facts.vocabulary,
        spec=model.spec,
        kv_bytes=kept.used_bytes,
        state_bytes=kept.state_bytes,
        total_bytes=watch.peak_bytes,
        rest_bytes=_rest_bytes(model, tokens),
        predicted_weights_bytes=_predicted_weights(model),
        all_logits_bytes=other.peak_bytes if asked else None,
    )


def _every_row(trial: Trial, tokens: int) -> tuple[Any, list[torch.Tensor]] | None:
    """The cache and the logits of every position, read in the chunks of a run; None where they do not fit.

    Raises `Stopped`.
    """
    model = trial.model
    if logits_bytes(tokens, model.facts.vocabulary) * 2 > free_bytes(model.device):
        return None
    cache: Any = new_cache(model.module)
    rows: list[torch.Tensor] = []
    for begin in range(0, tokens, PREFILL_CHUNK_TOKENS):
        if trial.stopped:
            raise Stopped
        chunk = trial.ids(min(PREFILL_CHUNK_TOKENS, tokens - begin), begin)
        rows.append(model.turns.take(partial(_rows, model, chunk, cache)))
    return cache, rows


@torch.inference_mode()
def _rows(model: LoadedModel, ids: tuple[int, ...], cache: Any) -> torch.Tensor:
    return forward_all(model.module, torch.tensor([ids], device=model.device), cache, len(ids)).float()


def _predicted_weights(model: LoadedModel) -> int | None:
    """Parameters counted on the config's own module, in the width that the model is loaded in."""
    try:
        return count_parameters(model.module.config.to_dict()) * model.module.dtype.itemsize
    except UnknownShape:
        return None


def _rest_bytes(model: LoadedModel, tokens: int) -> int | None:
    """The estimate for where nothing could be measured."""
    config = model.module.config.get_text_config()
    hidden, inner = (getattr(config, name, None) for name in ("hidden_size", "intermediate_size"))
    if not isinstance(hidden, int) or not isinstance(inner, int):
        return None
    return activation_bytes(min(tokens, PREFILL_CHUNK_TOKENS), hidden, inner, model.module.dtype.itemsize)


class _Watch:
    """A context that knows its peak afterwards: weights, and what was taken beyond what stood before."""

    def __init__(self, device: torch.device, weights_bytes: int) -> None:
        self._device, self._weights = device, weights_bytes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="peak", daemon=True)
        self._before = self._most = 0
        self.peak_bytes: int | None = None

    def __enter__(self) -> "_Watch":
        if self._device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self._device)
            self._before = torch.cuda.memory_allocated(self._device)
        elif self._device.type == "cpu":
            _give_back()
            self._before = self._most = _resident_bytes()
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._device.type == "cuda":
            self._most = torch.cuda.max_memory_allocated(self._device)
        elif self._device.type == "cpu":
            self._thread.join()
            self._most = max(self._most, _resident_bytes())
        else:
            return  # MPS keeps no peak
        self.peak_bytes = self._weights + self._most - self._before

    def _look(self) -> None:
        while not self._over.wait(_WATCH_SECONDS):
            self._most = max(self._most, _resident_bytes())


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)


def _give_back() -> None:
    """Let the C library return freed memory to the system, where it has a call for that (glibc)."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
