"""Prompts and sampling settings that one press fills in, read from `assets/presets.toml`.

Knows no component; the names that people see are texts of the page.
"""

import json
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from playground.core.decoding import GREEDY, Decoding, parse_decoding, validated
from playground.core.stages import read_order, write_order
from playground.settings import assets_dir

_DEFAULTS = Decoding()

_SAMPLING: tuple[str, ...] = ("temperature", "top_k", "top_p", "min_p", "typical_p", "seed")
_ALWAYS: tuple[str, ...] = ("repetition_penalty", "penalty_scope")
"""What acts in greedy decoding too."""


@dataclass(frozen=True, slots=True)
class PromptPreset:
    """A prompt and how it is meant: `chat` or `raw`. `max_new_tokens` is None where any length shows its point."""

    name: str
    mode: str
    text: str
    max_new_tokens: int | None = None


@cache
def prompts() -> tuple[PromptPreset, ...]:
    """The prompts in the order they are offered."""
    return tuple(PromptPreset(**entry) for entry in _file()["prompt"])


@cache
def samplings() -> dict[str, Decoding]:
    """Settings by name, greedy first."""
    named = {entry.pop("name"): entry for entry in map(dict, _file()["sampling"])}
    return {"greedy": GREEDY} | {name: validated(Decoding(**values)) for name, values in named.items()}


@cache
def lanes() -> dict[str, Decoding]:
    """Settings that a run of a comparison can be filled with, by name: those above and more."""
    more = {entry.pop("name"): entry for entry in map(dict, _file()["lane"])}
    orders = {name: read_order(entry.pop("order")) for name, entry in more.items() if "order" in entry}
    read = {
        name: validated(Decoding(**entry, order=orders.get(name, _DEFAULTS.order)))
        for name, entry in more.items()
    }
    return samplings() | read


def preset_of(spec: str) -> str:
    """The preset whose settings these are, whatever the seed; `own` where they are nobody's."""
    asked = replace(parse_decoding(spec), seed=None)
    found = (name for name, preset in lanes().items() if replace(preset, seed=None) == asked)
    return next(found, "own")


def spec_of(decoding: Decoding) -> str:
    """The settings as `parse_decoding` reads them, nothing that acts left out.

    The name and the number of new tokens stand elsewhere in Compare.
    """
    greedy = decoding.strategy == "greedy"
    parts = ["greedy"] if greedy else []
    for name in _ALWAYS if greedy else _SAMPLING + _ALWAYS:
        value = getattr(decoding, name)
        if name in ("temperature", "top_p") or value != getattr(_DEFAULTS, name):
            parts.append(f"{name}={_written(value)}")
    if decoding.order != _DEFAULTS.order and not decoding.greedy:
        parts.append(f"order={write_order(decoding.order)}")
    parts += [f"stop={json.dumps(text, ensure_ascii=False)}" for text in decoding.stop]
    return ",".join(parts)


def _written(value: object) -> str:
    """`value` without loss, whole numbers without a point."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads((assets_dir() / "presets.toml").read_text("utf-8"))
