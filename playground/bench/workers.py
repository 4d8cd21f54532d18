"""One process for each contender, so that none runs among another's threads.

A process that has computed on two threads keeps two pools of OpenMP workers, and every step after
that waits for both; a contender would be timed with what the one before it left behind. Knows no
contender's inside.
"""

import multiprocessing
from dataclasses import dataclass
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Any

from playground.core.request import ModelFacts


@dataclass(frozen=True, slots=True)
class Choice:
    """The model that every worker loads for itself."""

    model: str | None
    device: str
    dtype: str


class Worker:
    """A process that has the model loaded and runs one way when told to; the others stand still."""

    def __init__(self, way: str, choice: Choice) -> None:
        self.way = way
        here, there = multiprocessing.Pipe()
        self._pipe = here
        spawn = multiprocessing.get_context("spawn")
        self._process = spawn.Process(target=_work, args=(there, way, choice), daemon=True)
        self._process.start()
        there.close()
        self.facts, self.threads = self._answer()

    def rate(self, settings: str, tokens: int) -> float:
        """Tokens a second, over all its continuations, of one run of `tokens` tokens each."""
        self._pipe.send((settings, tokens))
        seconds, continuations = self._answer()
        return float(continuations * tokens / seconds)

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join(timeout=10)
        self._process.terminate()

    def _answer(self) -> Any:
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise RuntimeError(f"The benchmark's process for “{self.way}” ended without an answer.") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _work(pipe: Connection, way: str, choice: Choice) -> None:
    try:
        import torch

        from playground.bench.contenders import CONTENDERS, SETTINGS
        from playground.engine.load import load_model

        model = load_model(choice.model, device=choice.device, dtype=choice.dtype)
        model.stop_ids = frozenset()  # everyone makes the same number of tokens
        contender = CONTENDERS[way]
        facts: ModelFacts = model.facts
        pipe.send((facts, torch.get_num_threads()))
        while True:
            settings, tokens = pipe.recv()
            began = perf_counter()
            contender.run(model, SETTINGS[settings], tokens)
            if facts.device.startswith("cuda"):
                torch.cuda.synchronize()
            pipe.send((perf_counter() - began, contender.continuations))
    except EOFError:
        return
    except Exception as error:
        pipe.send(error)
