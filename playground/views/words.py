"""The strings of the page in each language, from `assets/i18n/<language>.json`: sections of keys.

Such a file is all that a language takes. For whatever shows text, the page and the files that it exports
alike. Knows no component.
"""

import json
from functools import cache

from playground.settings import assets_dir

FIRST = "en"
"""What is spoken until another language is chosen."""


def languages() -> tuple[str, ...]:
    """The languages that have a file, English first."""
    found = sorted(file.stem for file in (assets_dir() / "i18n").glob("*.json"))
    return (FIRST, *(name for name in found if name != FIRST))


LANGUAGES = languages()


@cache
def sections(language: str) -> dict[str, dict[str, str]]:
    """All sections of one language; an unknown language is English."""
    name = language if language in LANGUAGES else LANGUAGES[0]
    data: dict[str, dict[str, str]] = json.loads((assets_dir() / "i18n" / f"{name}.json").read_text("utf-8"))
    return data


def say(language: str, key: str, **values: object) -> str:
    """The text of `section.key`; raises KeyError for a key that is not there."""
    section, _, name = key.partition(".")
    text = sections(language)[section][name]
    return text.format(**values) if values else text
