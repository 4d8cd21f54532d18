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

import psutil
import torch

from playground.core.control import Control
from playground.core.experiment import PeakMemory, Progressed
from playground.core.peak import activation_bytes
from playground.core.peak import peak_memory as told_apart
from playground.engine.cache import measure
from playground.engine.decode import PREFILL_CHUNK_TOKENS
from playground.engine.model import LoadedModel
from playground.engine.trial import Trial, in_a_sentence

_WATCH_SECONDS = 0.002


@in_a_sentence
def peak_memory(
    model: LoadedModel, *, tokens: int = 1024, control: Control | None = None
) -> Iterator[Progressed | PeakMemory]:
    """Memory at the peak of a prefill of `tokens`, cut to the model's context."""
    trial = Trial(model, control, float("inf"))
    tokens = max(1, min(tokens, trial.context))
    trial.warm_up()
    yield Progressed(1, 2, tokens)
    weights = model.facts.weights_bytes or sum(p.nbytes for p in model.module.parameters())
    with _Watch(model.device, weights) as watch:
        cache = trial.prefill(tokens)[0]
    kept = measure(cache)
    yield Progressed(2, 2, tokens)
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
    )


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
