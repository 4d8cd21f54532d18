"""A recorded run as one HTML file: the live stage with its style, its words and the record inside.

Opened from a disk it shows, scrubs and plays the run; it asks nobody for anything, which its content
security policy holds. What the record says reaches the page as data and from there as text, never as
markup. Knows no server.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from playground.core.record import Record
from playground.settings import assets_dir
from playground.views.bundle import bundled
from playground.views.entries import entry
from playground.views.packets import layout_of, record_packet
from playground.views.words import LANGUAGES, sections

LABEL = "opened"

_PAGE = Markup("""<!doctype html>
<html lang="{language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title} · First Token</title>
<link rel="icon" href="data:,">
<style>{style}</style>
<header class="of-top"><span class="of-brand">First<i>·</i>Token</span>
<span class="of-chips" id="of-chips">{chips}</span></header>
<main class="of-page">{body}</main>
{data}<script>{script}</script>
</html>
""")

_BODY = Markup("""<h1 id="of-title" dir="auto">{title}</h1>
<p class="of-lesson" id="of-lesson"></p>
<p class="of-quiet of-facts" id="of-facts"></p>
<div class="of-player" id="of-player" role="group" aria-label="{player}"></div>
<div id="of-stage"></div>
<noscript><p>{noscript}</p></noscript>
<p class="of-quiet of-foot" id="of-foot"></p>""")


def offline_page(records: Sequence[Record], language: str = LANGUAGES[0], name: str = "") -> str:
    """The file of `records`, of which one at a time is shown; `name` is the stem of a shipped trace."""
    says = [{one: asdict(entry(record, one, name)) for one in LANGUAGES} for record in records]
    data = {
        "language": language,
        "name": name or "trace",
        "words": {one: _words(one) for one in LANGUAGES},
        "records": [
            {"layout": layout_of(record), "packet": record_packet(record, label=LABEL), "says": said}
            for record, said in zip(records, says, strict=True)
        ],
    }
    texts = sections(language)["offline"]
    title = says[0][language]["title"] if says else texts["nothing"]
    body = _BODY.format(title=title, player=texts["player"], noscript=texts["noscript"])
    return page(
        title,
        body,
        "offline.js",
        (
            "tokens.css",
            "stage.css",
            "inspector.css",
            "whatif.css",
            "compare.css",
            "branches.css",
            "offline.css",
        ),
        language,
        data,
    )


def page(
    title: str,
    body: Markup,
    script: str,
    styles: Sequence[str],
    language: str,
    data: Any = None,
    chips: Markup = Markup(""),
) -> str:
    """A page that stands alone: styles and script inside, and a policy that allows these and no other.

    `data` is there for the script to read, `chips` stand in the header.
    """
    style = "\n".join((assets_dir() / name).read_text(encoding="utf-8") for name in styles)
    code = bundled(assets_dir() / script)
    policy = (
        f"default-src 'none'; script-src {_hash(code)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return str(_PAGE.format(
        language=sections(language)["page"]["lang"], policy=policy, title=title, style=Markup(style),
        chips=chips, body=body, data=Markup("") if data is None else _data(data), script=Markup(code),
    ))  # fmt: skip


def _words(language: str) -> dict[str, Any]:
    found = sections(language)
    texts = {"stage": found["stage"], "offline": found["offline"]}
    return {"name": found["page"]["language"], "lang": found["page"]["lang"], **texts}


def _data(data: Any) -> Markup:
    """JSON in which no markup can end or begin; half a character pair stays as it was."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return Markup('<script type="application/json" id="first-token-data">{}</script>\n').format(Markup(text))


def _hash(text: str) -> str:
    """The source of that inline text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
