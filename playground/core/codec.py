"""Events as JSON values and back; the one encoding of trace files and of the page's packets.

The ticks and the result of a race are encoded like events.

An event is an object with its kind under "event". Tokens are short arrays, since most of a trace
is tokens:

    token      [id, text, bytes, special]
    candidate  [token, raw_logprob, processed_probability, removed_by]
    expected   [token, logprob]

Reading trusts nothing: every value must have the type that the record declares, numbers must lie in
the range of their unit, keys that are not known are left out (a newer writer may add some).
"""

from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from playground.core.race import Item
from playground.core.tokens import Candidate, Expected, Token

KINDS: dict[str, type] = {kind.__name__.lower(): kind for kind in get_args(Item)}

_AS_ARRAY = (Token, Candidate, Expected)

_BOUNDS = (
    ("seconds", 0.0, 1e9), ("probability", 0.0, 1.0), ("mass", 0.0, 1.0), ("share", 0.0, 1.0),
    ("draw", 0.0, 1.0),
    ("logprob", -1e6, 0.0), ("bits", 0.0, 1e6), ("logsumexp", -1e6, 1e6),
)  # fmt: skip


_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


class Malformed(ValueError):
    """A value that is not what the record declares; the message names the place."""


class UnknownKind(Malformed):
    """An event of a kind that this version does not know."""


def encode(event: Item) -> dict[str, Any]:
    """`event` as an object of JSON values."""
    return {"event": type(event).__name__.lower(), **_plain(event)}


def encode_token(token: Token) -> list[Any]:
    """`token` as events carry it."""
    found: list[Any] = _plain(token)
    return found


def decode(data: object) -> Item:
    """The event that `data` describes; raises `UnknownKind` or `Malformed`."""
    if not isinstance(data, dict) or not isinstance(data.get("event"), str):
        raise Malformed("an event must be an object with its kind under “event”")
    if data["event"] not in KINDS:
        raise UnknownKind(data["event"][:40])
    event: Item = _build(KINDS[data["event"]], data, data["event"])
    return event


def _plain(value: Any) -> Any:
    if isinstance(value, _AS_ARRAY):
        return [_plain(getattr(value, name)) for name in value.__slots__]
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    return value


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: Any
    required: bool


@cache
def _shape(kind: type) -> tuple[_Field, ...]:
    hints = get_type_hints(kind)
    return tuple(
        _Field(f.name, hints[f.name], f.default is MISSING and f.default_factory is MISSING)
        for f in fields(kind)
    )


def _build(kind: type, data: Any, place: str) -> Any:
    if kind in _AS_ARRAY:
        data = _named(kind, data, place)
    if not isinstance(data, dict):
        raise Malformed(f"{place} must be an object")
    values = {}
    for field in _shape(kind):
        if field.name in data:
            values[field.name] = _value(field.type, data[field.name], f"{place}.{field.name}")
        elif field.required:
            raise Malformed(f"{place} has no {field.name}")
    return kind(**values)


def _named(kind: type, data: Any, place: str) -> dict[str, Any]:
    names = _field_names(kind)
    if not isinstance(data, list) or len(data) > len(names):
        raise Malformed(f"{place} must be an array of at most {len(names)} values")
    return dict(zip(names, data, strict=False))


def _value(kind: Any, data: Any, place: str) -> Any:
    if is_dataclass(kind):
        return _build(kind, data, place)  # type: ignore[arg-type]
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _one_of(arguments, data, place)
    if origin is Literal:
        return _literal(arguments, data, place)
    if origin is tuple:
        return _tuple(arguments, data, place)
    return _scalar(kind, data, place)


def _one_of(kinds: tuple[Any, ...], data: Any, place: str) -> Any:
    if data is None and NoneType in kinds:
        return None
    (kind,) = (k for k in kinds if k is not NoneType)
    return _value(kind, data, place)


def _literal(choices: tuple[Any, ...], data: Any, place: str) -> Any:
    if data not in choices:
        raise Malformed(f"{place} must be one of {', '.join(map(str, choices))}")
    return data


def _tuple(arguments: tuple[Any, ...], data: Any, place: str) -> Any:
    if not isinstance(data, list):
        raise Malformed(f"{place} must be an array")
    if arguments[-1] is Ellipsis:
        return tuple(_value(arguments[0], item, place) for item in data)
    if len(data) != len(arguments):
        raise Malformed(f"{place} must have {len(arguments)} values")
    return tuple(_value(kind, item, place) for kind, item in zip(arguments, data, strict=True))


def _scalar(kind: Any, data: Any, place: str) -> Any:
    whole_for_real = kind is float and type(data) is int
    if type(data) is not kind and not whole_for_real:
        raise Malformed(f"{place} must be {_NAMES[kind]}")
    if kind not in (int, float):
        return data
    low, high = bounds(kind, place.rpartition(".")[2])
    if not low <= data <= high:
        raise Malformed(f"{place} must be a number from {low:g} to {high:g}")
    return kind(data)


def bounds(kind: type, name: str) -> tuple[float, float]:
    """The range of a number by its field's name, which carries its unit."""
    if kind is int:
        return 0, 2**53
    for ending, low, high in _BOUNDS:
        if name.endswith(ending):
            return low, high
    return -1e15, 1e15
