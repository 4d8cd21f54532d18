"""Sets of lanes that a person keeps in the browser: lists of specs, bounded, checked when they come back.

Knows no component.
"""

from playground.core.decoding import InvalidSetting, describe, parse_decoding
from playground.ui.lanes import LANES, OWN, Fields
from playground.ui.presets import preset_of

SETS_LIMIT = 12
SPEC_LIMIT = 400


def kept(store: object) -> list[list[str]]:
    """The sets in the browser's store, the newest first; what is none of ours is left out."""
    given = store if isinstance(store, list) else []
    return [list(specs) for specs in given[:SETS_LIMIT] if _is_set(specs)]


def one_more(sets: list[list[str]], fields: Fields) -> list[list[str]]:
    """`sets` with the lanes that are shown in front, each set once; lanes that are wrong are not kept."""
    specs = [spec for on, spec in zip(fields.shown, fields.specs, strict=True) if on]
    if not _is_set(specs):
        return sets
    return [specs, *(one for one in sets if one != specs)][:SETS_LIMIT]


def restored(specs: list[str]) -> Fields:
    """The fields that a set fills; rows that it leaves out are hidden."""
    empty = len(LANES) - len(specs)
    return Fields(
        (True,) * len(specs) + (False,) * empty,
        (*map(preset_of, specs), *(OWN,) * empty),
        (*specs, *("greedy",) * empty),
    )


def label(specs: list[str]) -> str:
    """A set in one line."""
    return " | ".join(describe(parse_decoding(spec)) for spec in specs)


def _is_set(specs: object) -> bool:
    if not isinstance(specs, list) or not 2 <= len(specs) <= len(LANES):
        return False
    return all(isinstance(spec, str) and len(spec) <= SPEC_LIMIT and _reads(spec) for spec in specs)


def _reads(spec: str) -> bool:
    try:
        parse_decoding(spec)
    except InvalidSetting:
        return False
    return True
