"""Stands in for the platform's package `spaces`: a generator runs in a forked worker, everything is pickled.

What it keeps of the platform: one process a call, arguments and yields pickled, a stop that is seen at the next
yield, errors that lose their text, a duration that is asked for beforehand and may be refused, and whose
quota it is read from the visitor's request. What it lacks: a GPU. `asked` are the durations of all calls.
"""

import multiprocessing
import os
import pickle
from functools import partial, wraps

seconds_left = float(os.environ.get("STAND_IN_SECONDS_LEFT", "inf"))
longest_seconds = 600.0
needs_request = os.environ.get("STAND_IN_NEEDS_REQUEST") == "1"
asked = []
calls = []
_forking = multiprocessing.get_context("fork")


class Error(Exception):
    """As gradio's, which the platform raises: a message and a title."""

    def __init__(self, message, title):
        super().__init__(message)
        self.title = title


def GPU(task=None, *, duration=60, size=None):
    """The decorator, with or without arguments."""
    if task is None:
        return partial(GPU, duration=duration, size=size)

    @wraps(task)
    def call(*arguments):
        _schedule(duration(*arguments) if callable(duration) else duration)
        ours, theirs = _forking.Pipe(duplex=False)
        stop = _forking.Event()
        worker = _forking.Process(
            target=_work, args=(task, pickle.dumps(arguments), theirs, stop), daemon=True
        )
        worker.start()
        print("stand-in: a worker began", flush=True)
        theirs.close()
        calls.append(worker)
        try:
            yield from _read(ours)
        finally:
            stop.set()
            ours.close()

    return call


def gradio_auto_wrap(task):
    """Gradio hands every handler to it; the platform leaves them as they are."""
    return task


def _schedule(seconds):
    asked.append(seconds)
    if needs_request and _request() is None:
        raise Error("Space app has reached its GPU limit.", "ZeroGPU quota exceeded")
    if seconds > longest_seconds:
        raise Error(f"The requested GPU duration ({seconds}s) is too large", "ZeroGPU illegal duration")
    if seconds > seconds_left:
        raise Error(
            f"You have exceeded your free ZeroGPU quota ({seconds}s requested vs. {seconds_left}s left). "
            "Try again in 5:43:21. <a href='https://example.com'>Subscribe</a>",
            "ZeroGPU quota exceeded",
        )


def _request():
    from gradio.context import LocalContext

    return LocalContext.request.get(None)


def _read(ours):
    while True:
        try:
            kind, value = pickle.loads(ours.recv_bytes())
        except EOFError:
            raise Error("GPU task aborted", "ZeroGPU worker error") from None
        if kind == "error":
            raise Error(value, "ZeroGPU worker error")
        if kind == "end":
            return
        yield value


def _work(task, arguments, theirs, stop):
    try:
        generator = task(*pickle.loads(arguments))
        for value in generator:
            if stop.is_set():
                generator.close()
                break
            theirs.send_bytes(pickle.dumps(("value", value)))
        theirs.send_bytes(pickle.dumps(("end", None)))
    except BrokenPipeError:
        pass
    except Exception as error:
        theirs.send_bytes(pickle.dumps(("error", type(error).__name__)))
