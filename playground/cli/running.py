"""Loading a model and following one run from the terminal: progress, Ctrl-C, the trace file.

Knows the backend's protocol; imports the engine when a command runs.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from playground.backends.protocol import Backend
from playground.cli.summary import failures
from playground.cli.terminal import complain, console, say, whisper
from playground.core.control import Control
from playground.core.decoding import InvalidSetting
from playground.core.events import Event, Prefilling
from playground.core.request import Request
from playground.core.run import Run, advance
from playground.core.trace import dump_trace
from playground.engine.progress import Progress

if TYPE_CHECKING:
    from playground.backends.local import LocalBackend, LocalTokenizer
    from playground.backends.native import NativeBackend

OnEvent = Callable[[Run, Event], None]


def local_backend(model: str | None, device: str, dtype: str, offline: bool) -> "LocalBackend":
    """The model, loaded; says on stderr what takes time meanwhile."""
    with progress_line() as report:
        report(Progress("import"))
        from playground import settings
        from playground.backends.local import LocalBackend
        from playground.engine.load import load_model

        name = model or settings.from_environment().model
        return LocalBackend(load_model(name, device=device, dtype=dtype, offline=offline, progress=report))


def chosen_backend(server: str | None, model: str | None, device: str, dtype: str, offline: bool) -> Any:
    """The model behind `server` where one is given, else the one of this machine; raises `Refused`.

    The key of a server is read from the environment, since a command line is seen by everybody.
    """
    if server is None:
        return local_backend(model, device, dtype, offline)
    from playground import settings

    if server == settings.NATIVE:
        return native_backend(model)
    from playground.backends.remote.backend import connect

    return connect(server, settings.from_environment().server_key, model)


def native_backend(model: str | None) -> "NativeBackend":
    """The GGUF file `model`, or the default's, in llama.cpp; says on stderr what takes time meanwhile."""
    with progress_line() as report:
        from playground.backends.native import open_native
        from playground.engine.sources import gguf

        return open_native(gguf(model, report=report))


def local_tokenizer(model: str | None, offline: bool) -> "LocalTokenizer":
    """The model's tokenizer, loaded without the model."""
    with progress_line() as report:
        report(Progress("import"))
        from playground import settings
        from playground.backends.local import LocalTokenizer
        from playground.engine.load import load_tokenizer

        name = model or settings.from_environment().model
        return LocalTokenizer(load_tokenizer(name, offline=offline, progress=report))


@contextmanager
def progress_line() -> Iterator[Callable[[Progress], None]]:
    """A line that changes in place on a terminal; elsewhere one line for each step with bytes."""
    if console.is_terminal:
        with console.status("", spinner="dots") as status:
            yield lambda progress: status.update(f"[dim]{progress.sentence()}[/dim]")
        return
    said: set[str] = set()

    def report(progress: Progress) -> None:
        if progress.total_bytes and progress.step not in said:
            said.add(progress.step)
            say(progress.sentence())

    yield report


def follow(backend: Backend, request: Request, on_event: OnEvent) -> Run:
    """Run `request` to its end or to Ctrl-C, which ends it after the step in hand."""
    run, control = Run(), Control()
    with stopped_by_interrupt(control):
        for event in backend.stream(request, control):
            advance(run, event)
            on_event(run, event)
    return run


def silent(run: Run, event: Event) -> None:
    """For a run that only its result speaks for."""


def prefill_line() -> OnEvent:
    """A line on a terminal's stderr while a long prompt is read."""
    status = console.status("", spinner="dots")

    def show(run: Run, event: Event) -> None:
        if isinstance(event, Prefilling) and event.done_tokens < event.total_tokens and console.is_terminal:
            status.update(
                f"[dim]Reading the prompt: {event.done_tokens:,} of {event.total_tokens:,} tokens[/dim]"
            )
            status.start()
        elif not isinstance(event, Prefilling):
            status.stop()

    return show


def require_writable(trace: Path | None) -> None:
    """Refuse a trace file that cannot be written before the run, not after it."""
    if trace is None:
        return
    if trace.is_dir() or not trace.absolute().parent.is_dir():
        raise InvalidSetting(
            f"The trace file {str(trace)!r} cannot be written: give a file in a folder that exists."
        )


def notes(run: Run) -> None:
    """Say what the user should know of the run."""
    for note in run.notes:
        whisper(f"Note: {note.text}")


def conclude(run: Run, trace: Path | None) -> int:
    """Write the trace and say what failed; returns the exit code."""
    if trace is not None:
        dump_trace(run, trace)
        whisper(f"Trace written to {trace}.")
    sentences = failures(run)
    for sentence in sentences:
        complain(sentence)
    return 1 if sentences else 0


@contextmanager
def stopped_by_interrupt(control: Control) -> Iterator[None]:
    """The first Ctrl-C asks the run to stop, a second one ends the program."""

    def stop(number: int, frame: FrameType | None) -> None:
        if control.stopped:
            raise KeyboardInterrupt
        control.stop()

    before: Any = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
