"""The index of a folder of exported runs: static markup in every language, for a folder on any web server
or none. Knows no file."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from playground.views.entries import Entry
from playground.views.offline import page
from playground.views.words import LANGUAGES, say, sections

_STYLES = ("tokens.css", "offline.css")


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One file of the gallery, and what is said of it in each language."""

    file: str
    says: dict[str, Entry]


def gallery_page(exhibits: Sequence[Exhibit], language: str = LANGUAGES[0]) -> str:
    """The index as a page that stands alone."""
    cards = Markup("").join(_card(exhibit) for exhibit in exhibits)
    head = {
        one: Entry(**{part: say(one, f"offline.gallery_{part}") for part in ("title", "lesson", "facts")})
        for one in LANGUAGES
    }
    body = Markup(
        '<h1>{}</h1><p class="of-lesson">{}</p><ul class="of-cards">{}</ul><p class="of-quiet of-foot">{}</p>'
    )
    parts = [_both(head, "title"), _both(head, "lesson"), cards, _both(head, "facts")]
    chips = Markup(
        '<button type="button" class="of-chip" id="of-dark" aria-pressed="false">{}</button>'
        '<button type="button" class="of-chip" id="of-other">{}</button>'
    ).format(
        sections(language)["offline"]["dark"], " / ".join(say(one, "page.language") for one in LANGUAGES)
    )
    return page(head[language].title, body.format(*parts), "gallery.js", _STYLES, language, chips=chips)


def _card(exhibit: Exhibit) -> Markup:
    title, lesson, facts = (_both(exhibit.says, part) for part in ("title", "lesson", "facts"))
    said = (
        Markup("<p>{}</p>").format(lesson) if any(one.lesson for one in exhibit.says.values()) else Markup("")
    )
    return Markup('<li class="of-card"><h2><a href="{}">{}</a></h2>{}<p class="of-quiet">{}</p></li>').format(
        exhibit.file, title, said, facts
    )


def _both(says: dict[str, Entry], part: str) -> Markup:
    """The same in every language, of which the script shows one; once where all agree."""
    texts = {one: getattr(said, part) for one, said in says.items()}
    if len(set(texts.values())) == 1:
        return Markup("{}").format(texts[LANGUAGES[0]])
    return Markup("").join(
        Markup('<span class="of-said" lang="{}">{}</span>').format(say(one, "page.lang"), text)
        for one, text in texts.items()
    )
