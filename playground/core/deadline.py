"""An answer within a time, or none. Knows nothing of what is asked."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar, cast

Answer = TypeVar("Answer")


def within(seconds: float, question: Callable[[], Answer]) -> Answer:
    """What `question` returns or raises, or `TimeoutError` after `seconds`.

    The question runs on in a side thread that nobody waits for: a name server that hangs knows no
    timeout of its own.
    """
    answers: queue.SimpleQueue[tuple[Answer | None, Exception | None]] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put((question(), None))
        except Exception as error:
            answers.put((None, error))

    threading.Thread(target=ask, name="question", daemon=True).start()
    try:
        answer, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if error is not None:
        raise error
    return cast(Answer, answer)
