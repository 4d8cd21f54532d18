"""Every string of the page, in each language, and the components that show them.

The words themselves are read in `views/words.py`. A component is made through `Words.make` with the keys
of its texts, so that one event can retranslate them all. Knows no layout.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import gradio as gr

from playground.views.words import FIRST, LANGUAGES, languages, say, sections

__all__ = ["FIRST", "LANGUAGES", "Say", "Source", "Words", "choices", "languages", "say", "sections"]

Made = TypeVar("Made")
Say = Callable[[str], str]
Source = str | Callable[[Say], Any]
"""A key of the text, or a function that builds the property from several."""


class Words:
    """The components of one page with the keys of their texts."""

    def __init__(self) -> None:
        self._made: list[tuple[Any, Mapping[str, Source]]] = []

    def make(self, kind: Callable[..., Made], texts: Mapping[str, Source], **properties: Any) -> Made:
        """A component whose properties in `texts` follow the language; built in English."""
        made = kind(**_read(texts, LANGUAGES[0]), **properties)
        self._made.append((made, texts))
        return made

    @property
    def components(self) -> list[Any]:
        """What `updates` speaks of, in its order."""
        return [component for component, _ in self._made]

    def updates(self, language: str) -> list[dict[str, Any]]:
        """One gradio update for each component."""
        return [gr.update(**_read(texts, language)) for _, texts in self._made]


def choices(section: str, names: Iterable[str]) -> Callable[[Say], list[tuple[str, str]]]:
    """The choices of a component: what is shown follows the language, the value does not."""
    return lambda speak: [(speak(f"{section}.{name}"), name) for name in names]


def _read(texts: Mapping[str, Source], language: str) -> dict[str, Any]:
    def speak(key: str) -> str:
        return say(language, key)

    return {
        name: speak(source) if isinstance(source, str) else source(speak) for name, source in texts.items()
    }


def whole(text: str) -> str:
    """`text` with half surrogate pairs replaced: one in a component's value ends the page's connection."""
    return "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in text)
