"""The experiments that the page offers, each as a function of the loaded model: what it varies, and how far.

Knows the names of the engine's experiments, and no component.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from playground.backends.protocol import Backend, BackendError, Measurer
from playground.core.control import Control

ELSEWHERE = (
    "This model cannot be measured from here; nothing was measured: choose one that runs on this machine."
)


@dataclass(frozen=True, slots=True)
class Reach:
    """How far the experiments go: prompt lengths, contexts and lanes; the model's context bounds them."""

    prefill_tokens: tuple[int, ...] = (32, 64, 128, 256, 512, 1024, 2048, 4096)
    step_contexts: tuple[int, ...] = (32, 128, 512, 1024, 2048, 4096)
    lanes: tuple[int, ...] = (1, 2, 4, 8, 16)
    one_by_one_tokens: int = 64
    roofline_tokens: int = 256
    peak_tokens: int = 1024
    repeats: int = 3

    def prefill(self, backend: Backend, control: Control) -> Iterator[Any]:
        """Prefill time against prompt length."""
        return self._of(backend).experiment(
            "prefill", control, lengths=self.prefill_tokens, repeats=self.repeats
        )

    def steps(self, backend: Backend, control: Control) -> Iterator[Any]:
        """Step time against context."""
        return self._of(backend).experiment(
            "steps", control, contexts=self.step_contexts, repeats=self.repeats
        )

    def one_by_one(self, backend: Backend, control: Control) -> Iterator[Any]:
        """The same prompt in one prefill and token by token."""
        return self._of(backend).experiment(
            "one-by-one", control, tokens=self.one_by_one_tokens, repeats=self.repeats
        )

    def peak(self, backend: Backend, control: Control) -> Iterator[Any]:
        """The most memory that a prefill takes, and once more with the logits of every position."""
        return self._of(backend).experiment("peak", control, tokens=self.peak_tokens)

    def roofline(self, backend: Backend, control: Control) -> Iterator[Any]:
        """Prefill and decode under the measured roof of the device."""
        return self._of(backend).experiment(
            "roofline", control, prompt_tokens=self.roofline_tokens, repeats=self.repeats
        )

    def several(self, backend: Backend, control: Control) -> Iterator[Any]:
        """Step time against lanes."""
        return self._of(backend).experiment("lanes", control, lanes=self.lanes, repeats=self.repeats)

    def prefill_work(self) -> tuple[int, ...]:
        """What each measurement of `prefill` reads, in the order in which it is made."""
        there, back = self.prefill_tokens, self.prefill_tokens[::-1]
        return tuple(n for turn in range(self.repeats) for n in (there if turn % 2 == 0 else back))

    def _of(self, backend: Backend) -> Measurer:
        """Raises `BackendError` for a record, or a model that stands behind a server."""
        if not isinstance(backend, Measurer):
            raise BackendError(ELSEWHERE)
        return backend
