"""How one lane chooses its tokens: the settings, what is allowed, and how they are written down.

Knows no logits; the engine's pipeline turns these values into stages.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from playground.core import stages
from playground.core.draws import SEED_LIMIT
from playground.core.refusal import Refused

Strategy = Literal["greedy", "sample", "beam", "speculative"]
Scope = Literal["all", "output"]
RUNNABLE_STRATEGIES: tuple[Strategy, ...] = ("greedy", "sample")
"""What the engine can run today; traces may hold the others."""

MAX_NEW_TOKENS_LIMIT = 100_000
IDS_LIMIT = 1000
"""Tokens that settings may force, ban or favour."""


class InvalidSetting(Refused, ValueError):
    """A setting outside its range; the message is one sentence for the person who set it."""

    wrong_use = True


@dataclass(frozen=True, slots=True)
class Decoding:
    """The settings of one lane. Off is: top_k 0, top_p 1, min_p 0, typical_p 1, penalty 1.

    Temperature 0 is greedy. `top_k` above the vocabulary keeps everything. `order` is that of the
    stages and names at least those that are on; the rest do nothing wherever they stand. `seed` None
    means that the engine draws one and reports it. `max_new_tokens` counts chosen tokens, the stop
    token included. The first tokens are the ids `forced`, whatever the settings make of them. `bias` adds to
    the logits of some ids, `banned` ids are never chosen; where `once`, both act on the first token alone that
    is not forced.
    """

    strategy: Strategy = "sample"
    temperature: float = 0.7
    top_k: int = 0
    top_p: float = 0.9
    min_p: float = 0.0
    typical_p: float = 1.0
    repetition_penalty: float = 1.0
    penalty_scope: Scope = "all"
    seed: int | None = None
    max_new_tokens: int = 64
    stop: tuple[str, ...] = ()
    beams: int = 1
    length_penalty: float = 1.0
    name: str = ""
    order: tuple[str, ...] = stages.STAGE_ORDER
    forced: tuple[int, ...] = ()
    bias: tuple[tuple[int, float], ...] = ()
    banned: tuple[int, ...] = ()
    once: bool = False

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is taken without a draw."""
        return self.strategy == "greedy" or (self.strategy == "sample" and self.temperature == 0)

    def at(self, step: int) -> "Decoding":
        """The settings of token number `step` (0-based): what acts `once` is over after the first free one."""
        over = self.once and step > len(self.forced)
        return replace(self, bias=(), banned=(), once=False) if over else self

    def active_stages(self) -> tuple[stages.Stage, ...]:
        """The stages that do anything under these settings, in the order they are applied.

        One that is on and not in `order` comes last; `validated` refuses that of all but `bias` and `ban`, which
        older orders do not name.
        """
        on: dict[stages.Stage, bool] = {
            "bias": bool(self.bias),
            "repetition_penalty": self.repetition_penalty != 1,
            "ban": bool(self.banned),
            "temperature": not self.greedy and self.temperature != 1,
            "top_k": not self.greedy and self.top_k > 0,
            "top_p": not self.greedy and self.top_p < 1,
            "min_p": not self.greedy and self.min_p > 0,
            "typical_p": not self.greedy and self.typical_p < 1,
        }
        return stages.in_order(self.order, on)


GREEDY = Decoding(strategy="greedy", temperature=0.0, top_p=1.0)


def validated(decoding: Decoding) -> Decoding:
    """The same settings, or `InvalidSetting` with a sentence for the first one out of range."""
    _require_choice("strategy", decoding.strategy, RUNNABLE_STRATEGIES)
    _require_choice("penalty_scope", decoding.penalty_scope, get_args(Scope))
    _require_number("temperature", decoding.temperature, 0, 100, "0 is greedy")
    require_whole("top_k", decoding.top_k, 0, 2**31 - 1, "0 is off")
    _require_number("top_p", decoding.top_p, 0, 1, "1 is off")
    _require_number("min_p", decoding.min_p, 0, 1, "0 is off")
    _require_number("typical_p", decoding.typical_p, 0, 1, "1 is off")
    _require_number("repetition_penalty", decoding.repetition_penalty, 0.01, 100, "1 is off")
    require_whole("max_new_tokens", decoding.max_new_tokens, 1, MAX_NEW_TOKENS_LIMIT)
    if decoding.seed is not None:
        require_whole("seed", decoding.seed, 0, SEED_LIMIT - 1)
    _require_stops(decoding.stop)
    _require_order(decoding)
    _require_ids(decoding)
    if not isinstance(decoding.name, str) or len(decoding.name) > 200:
        raise InvalidSetting("The name of a lane must be text of at most 200 characters.")
    return decoding


def chosen_decoding(strategy: str | None, sampling: Mapping[str, Any], **common: Any) -> Decoding:
    """What a command or an HTTP call asks for: greedy, unless a sampling setting is given.

    `sampling` settings that were not given are None. Not yet `validated`.
    """
    given = {name: value for name, value in sampling.items() if value is not None}
    base = Decoding() if given or strategy == "sample" else GREEDY
    if strategy is not None:
        common["strategy"] = strategy
    return replace(base, **given, **common)


def parse_decoding(spec: str, base: Decoding = Decoding()) -> Decoding:
    """Read `greedy` or `temperature=0.8,top_p=0.9,seed=1` on top of `base`.

    `stop` may stand there several times, and in quotes as JSON writes them: `stop=" a, b\\n"`.
    `order` is a name or stages between colons: `order=llama.cpp`, `order=top_k:top_p:temperature`.
    Raises `InvalidSetting` naming the part that is not understood.
    """
    changes: dict[str, Any] = {}
    for part in spec_parts(spec):
        name, equals, value = part.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            _require_choice("strategy", name, RUNNABLE_STRATEGIES)
            changes |= {"strategy": name}
        elif name == "stop":
            changes["stop"] = (*changes.get("stop", ()), _unquoted(value.strip()))
        elif name == "order":
            changes["order"] = stages.read_order(value)
        elif name in _READERS:
            changes[name] = _read(name, value.strip())
        else:
            known = ", ".join(_READERS)
            raise InvalidSetting(f"{_shown(name)} is not a setting; known are {known}.")
    if changes.get("strategy") == "greedy":
        changes = {"temperature": 0.0, "top_p": 1.0} | changes
    return validated(replace(base, **changes))


def spec_parts(spec: str) -> list[str]:
    """The parts of a spec between its commas, as they stand; a comma in quotes is text."""
    return [part for part in map(str.strip, _PARTS.findall(spec)) if part]


def as_settings(decoding: Decoding) -> dict[str, Any]:
    """Every setting by name, as JSON carries it."""
    lists = ("stop", "order", "forced", "banned")
    settings = asdict(decoding) | {name: list(getattr(decoding, name)) for name in lists}
    return settings | {"bias": [list(pair) for pair in decoding.bias]}


def describe(decoding: Decoding) -> str:
    """The settings in a few words that are the same in every language: `T 0.7, top-p 0.9`."""
    if decoding.greedy:
        words = ["greedy"]
    else:
        words = [f"T {decoding.temperature:g}"]
        words += [f"top-k {decoding.top_k}"] * (decoding.top_k > 0)
        words += [f"top-p {decoding.top_p:g}"] * (decoding.top_p < 1)
        words += [f"min-p {decoding.min_p:g}"] * (decoding.min_p > 0)
        words += [f"typical-p {decoding.typical_p:g}"] * (decoding.typical_p < 1)
    if decoding.repetition_penalty != 1:
        scope = " on the answer" if decoding.penalty_scope == "output" else ""
        words.append(f"penalty {decoding.repetition_penalty:g}{scope}")
    words += [f"{len(decoding.forced)} forced"] * bool(decoding.forced)
    words += [f"{len(decoding.banned)} banned"] * bool(decoding.banned)
    words += [f"{len(decoding.bias)} favoured"] * bool(decoding.bias)
    acting = decoding.active_stages()
    if acting != replace(decoding, order=stages.STAGE_ORDER).active_stages():
        words.append("order " + " > ".join(_SHORT.get(stage, stage.replace("_", "-")) for stage in acting))
    return ", ".join(words)


_SHORT = {"temperature": "T", "repetition_penalty": "penalty"}


def _require_number(name: str, value: object, low: float, high: float, note: str = "") -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:  # type: ignore[operator]  # false for NaN too
        hint = f" ({note})" if note else ""
        raise InvalidSetting(f"{name} must be a number from {low:g} to {high:g}{hint}, not {_shown(value)}.")


def require_whole(name: str, value: object, low: int, high: int, note: str = "") -> None:
    """Raise `InvalidSetting` unless `value` is a whole number from `low` to `high`; `note` says what is special."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        hint = f" ({note})" if note else ""
        allowed = f"{name} must be a whole number from {low:,} to {high:,}{hint}"
        raise InvalidSetting(f"{allowed}, not {_shown(value)}.")


def _require_stops(stop: object) -> None:
    if not isinstance(stop, tuple | list):
        raise InvalidSetting(
            "stop must be a list of stop strings, so a single one stands in a list of its own."
        )
    if any(not isinstance(text, str) or not text for text in stop):
        raise InvalidSetting("A stop string must be text of at least one character.")
    if len(stop) > 16 or any(len(text) > 1000 for text in stop):
        raise InvalidSetting("At most 16 stop strings of at most 1,000 characters are allowed.")


def _require_ids(decoding: Decoding) -> None:
    ids = (*decoding.forced, *decoding.banned, *(id for id, _ in decoding.bias))
    if len(ids) > IDS_LIMIT:
        raise InvalidSetting(f"Settings name at most {IDS_LIMIT:,} tokens to force, ban or favour.")
    for id in ids:
        require_whole("a token id", id, 0, 2**31 - 1)
    for _, by in decoding.bias:
        _require_number("a bias", by, -100, 100, "in logits")


def _require_order(decoding: Decoding) -> None:
    order = decoding.order
    sentence = stages.fault(order) or stages.left_out(order, decoding.active_stages())
    if sentence:
        raise InvalidSetting(sentence)


def _require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidSetting(f"{name} must be one of {', '.join(choices)}, not {_shown(value)}.")


def _shown(value: object) -> str:
    """`value` in an error sentence, whatever its size."""
    if isinstance(value, int) and abs(value) >= 10**30:
        return "one of more than 30 digits"
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


_READERS: dict[str, type] = {
    "strategy": str, "temperature": float, "top_k": int, "top_p": float, "min_p": float,
    "typical_p": float, "repetition_penalty": float, "penalty_scope": str, "seed": int,
    "max_new_tokens": int, "stop": str, "name": str, "order": str,
}  # fmt: skip

_PARTS = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^,])+')
"""What stands between commas; a comma in quotes is text."""


def _read(name: str, value: str) -> Any:
    try:
        return _READERS[name](value)
    except ValueError:
        raise InvalidSetting(f"{name} cannot be {_shown(value)}; it takes a number.") from None


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError:
        raise InvalidSetting(f"stop cannot be {_shown(value)}; its quotes do not match.") from None
