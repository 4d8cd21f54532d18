"""Who is asking: the token of a browser tab, its language, and numbering of what it is sent.

The token is drawn in the browser, 128 random bits in the tab's session storage, and every handler
gets it anew; it is the only key to the tab's runs. Knows no component.
"""

import itertools
import json
import re
from dataclasses import dataclass

from playground.ui.text import LANGUAGES
from playground.views.packets import Packet, wire

_TOKEN = re.compile(r"[0-9a-f]{32}")
_RUN = re.compile(r"[\w.-]{1,80}")
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Tab:
    """One browser tab. `token` is empty where none was sent that could be one.

    `wish` grows with each event of the tab, so that one which was overtaken on its way is told from
    the latest; 0 is unknown.
    """

    token: str = ""
    language: str = "en"
    wish: int = 0

    def key(self, place: str) -> str:
        """The session of one of the tab's stages; each keeps its own run."""
        return f"{self.token}.{place}"


def read_tab(text: object) -> Tab:
    """The tab from what the page sent; whatever is not understood is left out."""
    data = _object(text)
    token, language, wish = data.get("session"), data.get("language"), data.get("wish")
    return Tab(
        token if isinstance(token, str) and _TOKEN.fullmatch(token) else "",
        language if isinstance(language, str) and language in LANGUAGES else LANGUAGES[0],
        wish if type(wish) is int and 0 <= wish < 2**53 else 0,
    )


def read_run(text: object) -> str | None:
    """The id of the run that the page asks for, None where there is none."""
    run = _object(text).get("run")
    return run if isinstance(run, str) and _RUN.fullmatch(run) else None


def _object(text: object) -> dict[str, object]:
    if isinstance(text, dict):
        return text
    if not isinstance(text, str) or len(text) > 1000:
        return {}
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def send(packet: Packet) -> str:
    """The packet as the stage's value, numbered so that every one is noticed."""
    return wire(packet, next(_numbers))
