"""What is refused before anything is loaded: a model of the wrong kind, or one that does not fit.

Reads `config.json` and compares bytes; loads no weights and runs no code of a model.
"""

import json
from pathlib import Path
from typing import Any

from playground.core.units import bytes_text
from playground.engine.devices import Memory
from playground.engine.progress import CannotLoad

LOADING_OVERHEAD = 1.1
"""Bytes needed over bytes of weights: buffers, the tokenizer and the first activations."""

_CONFIG_LIMIT_BYTES = 10 * 2**20


def read_config(folder: Path) -> dict[str, Any]:
    """The `config.json` of a model's folder; raises `CannotLoad` where it is unreadable."""
    file = folder / "config.json"
    try:
        if file.stat().st_size > _CONFIG_LIMIT_BYTES:
            raise ValueError("too long")
        config = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(folder) from error
    if not isinstance(config, dict):
        raise _unreadable(folder)
    return config


def require_causal(name: str, config: dict[str, Any]) -> None:
    """Refuse a config that transformers alone cannot run as a causal language model."""
    from transformers import __version__
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    kind = str(config.get("model_type"))
    if kind not in CONFIG_MAPPING_NAMES:
        if config.get("auto_map"):
            raise CannotLoad(
                f"{name!r} needs code that comes with the model, which is never run here; nothing was "
                "changed: choose a model that transformers supports by itself."
            )
        raise CannotLoad(
            f"{name!r} is of the kind {kind[:80]!r}, which transformers {__version__} does not know; "
            "nothing was changed: update transformers, or choose another model."
        )
    named = config.get("architectures")
    classes = set(map(str, named)) if isinstance(named, list) else set()
    causal = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    wrong_class = bool(classes) and not classes & causal
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or config.get("is_encoder_decoder") or wrong_class:
        what = ", ".join(sorted(classes))[:80] or kind
        raise CannotLoad(
            f"{name!r} is no causal language model ({what}), so it cannot continue a text token by token; "
            "nothing was changed: choose a model for text generation."
        )


def require_memory(name: str, needed_bytes: int, memory: Memory, where: str, dtype: str) -> None:
    """Refuse weights that do not fit into what is free on `where`."""
    if needed_bytes > memory.free_bytes:
        advice = "a smaller model, or --dtype bfloat16" if dtype == "float32" else "a smaller model"
        raise CannotLoad(
            f"{name!r} needs about {bytes_text(needed_bytes)} of memory in {dtype} and "
            f"{bytes_text(memory.free_bytes)} are free on {where}; nothing was changed: choose {advice}."
        )


def _unreadable(folder: Path) -> CannotLoad:
    return CannotLoad(
        f"The config.json in {folder.name!r} cannot be read; nothing was changed: fetch the model again."
    )
