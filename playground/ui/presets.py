"""Prompts and sampling settings that one press fills in, read from `assets/presets.toml`.

Knows no component; the names that people see are texts of the page.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from playground.core.decoding import GREEDY, Decoding, validated
from playground.settings import assets_dir


@dataclass(frozen=True, slots=True)
class PromptPreset:
    """A prompt and how it is meant: `chat` or `raw`."""

    name: str
    mode: str
    text: str


@cache
def prompts() -> tuple[PromptPreset, ...]:
    """The prompts in the order they are offered."""
    return tuple(PromptPreset(**entry) for entry in _file()["prompt"])


@cache
def samplings() -> dict[str, Decoding]:
    """Settings by name, greedy first."""
    named = {entry.pop("name"): entry for entry in map(dict, _file()["sampling"])}
    return {"greedy": GREEDY} | {name: validated(Decoding(**values)) for name, values in named.items()}


def spec_of(decoding: Decoding) -> str:
    """The settings as `parse_decoding` reads them."""
    if decoding.strategy == "greedy":
        parts = ["greedy"]
    else:
        parts = [f"temperature={decoding.temperature:g}"]
        parts += [f"top_k={decoding.top_k}"] * (decoding.top_k > 0)
        parts += [f"top_p={decoding.top_p:g}"]  # always: what is left out is 0.9, not off
        parts += [f"min_p={decoding.min_p:g}"] * (decoding.min_p > 0)
        parts += [f"seed={decoding.seed}"] * (decoding.seed is not None)
    parts += [f"repetition_penalty={decoding.repetition_penalty:g}"] * (decoding.repetition_penalty != 1)
    return ",".join(parts)


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((assets_dir() / "presets.toml").read_text("utf-8"))
