"""What loading tells while it works, and the one way in which it fails.

Numbers and stable keys only; the page translates them. Knows no source of weights.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from playground.core.refusal import Refused
from playground.core.units import bytes_text

Step = Literal["hub-check", "wait", "download", "verify", "convert", "import", "load"]

_SENTENCES: dict[Step, str] = {
    "hub-check": "Asking the Hugging Face Hub",
    "wait": "Waiting for another process that is fetching the same model",
    "download": "Downloading the model",
    "verify": "Checking the downloaded file",
    "convert": "Converting the model, once",
    "import": "Starting PyTorch",
    "load": "Loading the model",
}


class CannotLoad(Refused):
    """A model that cannot be loaded; the message is one sentence: what is wrong, what was kept,
    what to do. Nothing that was running has changed."""


class UnknownChoice(CannotLoad):
    """A device or dtype that is none on any machine."""

    wrong_use = True


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of getting a model ready. Bytes are None where the step has no measure."""

    step: Step
    done_bytes: int | None = None
    total_bytes: int | None = None

    def sentence(self) -> str:
        """The same in English, for a terminal."""
        text = _SENTENCES[self.step]
        sizes = [bytes_text(count) for count in (self.done_bytes, self.total_bytes) if count is not None]
        return f"{text}: {' of '.join(sizes)}" if sizes else f"{text} …"


Report = Callable[[Progress], None]


def silent(_: Progress) -> None:
    """The report for callers who did not ask for one."""


@contextmanager
def measured(
    report: Report,
    step: Step,
    total_bytes: int | None,
    done_bytes: Callable[[], int],
    every_seconds: float = 0.25,
) -> Iterator[None]:
    """Report `step` from a side thread while the body works, with the bytes that `done_bytes` sees."""
    ended = threading.Event()

    def tell() -> None:
        done = max(0, done_bytes())
        report(Progress(step, min(done, total_bytes) if total_bytes else done, total_bytes))

    def watch() -> None:
        while not ended.wait(every_seconds):
            tell()

    report(Progress(step, 0, total_bytes))
    thread = threading.Thread(target=watch, name=f"progress-{step}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if total_bytes:
        report(Progress(step, total_bytes, total_bytes))
