"""Keeps the progress bars and advice of transformers and accelerate out of the terminal while a model loads.

Errors still raise; only what would confuse is silenced. One model at a time: these settings are the
process's, and so is the default device under which transformers builds a model. Knows no model.
"""

import importlib
import logging as standard
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Item = TypeVar("Item")

_one_at_a_time = threading.Lock()


@contextmanager
def quiet() -> Iterator[None]:
    """No bars, no warnings from transformers or accelerate inside; as it was before, afterwards."""
    from transformers.utils import logging

    with _one_at_a_time, _as_before(), warnings.catch_warnings(), _no_gguf_bar():
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _as_before() -> Iterator[None]:
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    placing = standard.getLogger("accelerate")
    placing_level = placing.level
    placing.setLevel(standard.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(level)
        placing.setLevel(placing_level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def _no_gguf_bar() -> Iterator[None]:
    """The reader of GGUF files has a bar of its own, which asks nobody before it prints."""
    try:
        reading: Any = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
        bar = reading.tqdm
    except (ImportError, AttributeError):  # another release of transformers: then the bar shows
        yield
        return
    reading.tqdm = _items
    try:
        yield
    finally:
        reading.tqdm = bar


def _items(items: Iterable[Item], **_: Any) -> Iterable[Item]:
    return items
