"""Reading a model's `config.json`: a dictionary that nobody has checked. Knows no cache and no model."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from playground.core.refusal import Refused

COUNT_LIMIT = 10**9
"""Of heads, dimensions and windows: far above any model, and products of it stay numbers."""

Config = Mapping[str, Any]


class UnknownShape(Refused, ValueError):
    """A config from which the cache's shape cannot be told; the message says what is missing."""


def is_count(value: object) -> TypeGuard[int]:
    """Whether `value` can count something in a config: a whole number from 1 to `COUNT_LIMIT`."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= COUNT_LIMIT


def count(config: Config, *names: str) -> int:
    """The count under the first of `names` that the config has; raises `UnknownShape`."""
    found = count_if_any(config, *names)
    if found is None:
        raise UnknownShape(f"This config has no {names[0]}, so its KV cache cannot be computed.")
    return found


def count_if_any(config: Config, *names: str) -> int | None:
    """As `count`, but None where the config has none of `names`."""
    name = next((name for name in names if config.get(name) is not None), None)
    if name is None:
        return None
    value = config[name]
    if not is_count(value):
        allowed = f"{name} must be a whole number above 0 and at most {COUNT_LIMIT:,} in this config"
        raise UnknownShape(f"{allowed}, not {_short(value)}.")
    return value


def text_config(config: Config) -> Config:
    """The language model's part of a config that also describes eyes or ears."""
    inner = config.get("text_config")
    return inner if isinstance(inner, Mapping) and inner else config


def family(config: Config) -> str:
    """The config's `model_type`, in whatever form it stands there."""
    return str(config.get("model_type"))


def part(config: Config, name: str) -> Config:
    """The dictionary inside `config` under `name`; empty where there is none."""
    inner = config.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _short(value: object) -> str:
    """The value in a sentence; Python refuses to write down whole numbers of thousands of digits."""
    return "a number far too large" if isinstance(value, int) and abs(value) > 10**60 else repr(value)[:60]
