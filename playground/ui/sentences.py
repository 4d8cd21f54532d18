"""Refusals of the layers below in the language of the page.

Those layers speak English sentences and know no language. The English texts of the section
`sentences` are the patterns of these sentences, and the other languages' texts with the same keys
are what is said instead. A sentence that is not among them is shown as it is.
"""

import re
from functools import cache

from playground.ui.text import LANGUAGES, sections

SECTION = "sentences"
CHARACTERS_LIMIT = 1000

_SHAPES = {"place": r"[\w.]+"}
"""Of the parts that are filled in: the place in a record is a name, whatever else is any text."""


def translated(sentence: str, language: str) -> str:
    """`sentence` in `language`, the parts that were filled in kept."""
    if language == LANGUAGES[0] or len(sentence) > CHARACTERS_LIMIT:
        return sentence
    for key, pattern in _patterns():
        found = pattern.fullmatch(sentence)
        if found is not None:
            values = {name: translated(value, language) for name, value in found.groupdict().items()}
            return sections(language)[SECTION][key].format(**values)
    return sentence


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((key, _pattern(text)) for key, text in sections(LANGUAGES[0])[SECTION].items())


def _pattern(text: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", text)
    built = [
        f"(?P<{part}>{_SHAPES.get(part, '.+?')})" if i % 2 else re.escape(part)
        for i, part in enumerate(parts)
    ]
    return re.compile("".join(built), re.DOTALL)
