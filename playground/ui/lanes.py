"""The lanes of a comparison as the page's fields hold them: letters, presets, specs, seeds.

Everything that comes in is untrusted. Knows no component.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from playground.core.decoding import Decoding, InvalidSetting, describe, parse_decoding, spec_parts
from playground.ui import presets
from playground.ui.sentences import translated
from playground.ui.text import Say, say

LANES = "ABCD"
SEED = 5
SPEC_CHARACTERS_LIMIT = 40_000
OWN, SUGGESTED = "own", "suggested"


@dataclass(frozen=True, slots=True)
class Fields:
    """What stands in the rows: which are shown, the preset's name and the spec of each."""

    shown: tuple[bool, ...]
    names: tuple[str, ...]
    specs: tuple[str, ...]

    def put(self, index: int, name: str, spec: str) -> "Fields":
        """The same with row `index` shown and holding these."""
        return Fields(
            _put(self.shown, index, True), _put(self.names, index, name), _put(self.specs, index, spec)
        )

    def duplicated(self, index: int) -> "Fields":
        """Row `index` once more in the first row that is free; the same where none is."""
        if False not in self.shown:
            return self
        return self.put(self.shown.index(False), self.names[index], self.specs[index])

    def seeded(self, *, same: bool) -> "Fields":
        """All runs that draw with one seed, or each with one of its own."""
        seeds = [SEED if same else SEED + i for i in range(len(self.specs))]
        return replace(self, specs=tuple(map(with_seed, self.specs, seeds)))


def read_fields(shown: object, names: Sequence[object], specs: Sequence[object]) -> Fields:
    """The fields as the page sent them, cut to what they may be."""
    on = shown if isinstance(shown, list) and len(shown) == len(LANES) else [True] * len(LANES)
    known = (*lane_names(), OWN)
    return Fields(
        tuple(value is True for value in on),
        tuple(str(name) if name in known else OWN for name in names),
        tuple(str(spec or "")[:SPEC_CHARACTERS_LIMIT] for spec in specs),
    )


def with_seed(spec: str, seed: int) -> str:
    """`spec` with this seed in place of its own; a greedy one has no use for any."""
    parts = [part for part in spec_parts(spec) if part.partition("=")[0].strip() != "seed"]
    greedy = any(part.replace(" ", "") in ("greedy", "strategy=greedy", "temperature=0") for part in parts)
    return ",".join(parts if greedy else [*parts, f"seed={seed}"])


def lane_names() -> tuple[str, ...]:
    """The presets that a lane can be filled with, and the model's own suggestion."""
    return (*presets.lanes(), SUGGESTED)


def lane_choices(speak: Say) -> list[tuple[str, str]]:
    """The presets, each named with its settings."""
    named = [(_title(speak, name, decoding), name) for name, decoding in presets.lanes().items()]
    return [*named, *((speak(f"presets.{name}"), name) for name in (SUGGESTED, OWN))]


def spec_of(decoding: Decoding) -> str:
    """The settings of a preset as a spec, with the seed that the page begins with."""
    return presets.spec_of(decoding if decoding.greedy else replace(decoding, seed=SEED))


def read_lanes(shown: Any, names: Any, specs: Any, count: Any, language: str) -> tuple[Decoding, ...]:
    """The settings of the lanes that are shown; raises `InvalidSetting` naming the lane."""
    count = read_count(count, language)
    lanes = []
    for letter, on, name, spec in zip(LANES, shown, names, specs, strict=False):
        if on:
            title = say(language, f"presets.{name}") if name in lane_names() else ""
            try:
                lanes.append(parse_decoding(str(spec or ""), Decoding(max_new_tokens=count, name=title)))
            except InvalidSetting as error:
                raise InvalidSetting(
                    say(language, "errors.lane", letter=letter, sentence=translated(str(error), language))
                ) from None
    return tuple(lanes)


def read_count(count: Any, language: str) -> int:
    """The number of new tokens; raises `InvalidSetting` where it is no whole number."""
    if isinstance(count, float) and count.is_integer():
        return int(count)
    if not isinstance(count, int) or isinstance(count, bool):
        name = say(language, "controls.max_new_tokens")
        raise InvalidSetting(say(language, "errors.whole", name=name, value=str(count)[:40]))
    return count


def _title(speak: Say, name: str, decoding: Decoding) -> str:
    title = speak(f"presets.{name}")
    return title if decoding.greedy else f"{title}: {describe(replace(decoding, order=Decoding().order))}"


def _put(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])
