"""First Token: what happens between a prompt and the words that come out of a language model.

Importing this package imports neither torch nor gradio; names are loaded when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Decoding": "playground.core.decoding",
    "Request": "playground.core.request",
    "fold": "playground.core.run",
    "load_trace": "playground.core.trace",
    "dump_trace": "playground.core.trace",
    "cache_spec": "playground.core.kv",
    "load_model": "playground.engine.load",
    "race": "playground.engine.race",
    "score": "playground.engine.score",
    "stream": "playground.engine.decode",
    "waterfall": "playground.engine.waterfall",
}
__all__ = [
    "Decoding", "Request", "cache_spec", "dump_trace", "fold", "load_model", "load_trace", "race", "score", "stream",
    "waterfall",
]  # fmt: skip

if TYPE_CHECKING:
    from playground.core.decoding import Decoding
    from playground.core.kv import cache_spec
    from playground.core.request import Request
    from playground.core.run import fold
    from playground.core.trace import dump_trace, load_trace
    from playground.engine.decode import stream
    from playground.engine.load import load_model
    from playground.engine.race import race
    from playground.engine.score import score
    from playground.engine.waterfall import waterfall


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'playground' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
