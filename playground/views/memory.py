"""What the cache of the last run holds, as markup: measured bytes first, then what they are made of.

Pure functions from `core.holding` and the words of the page. All that comes in is escaped.
"""

from collections.abc import Mapping

from markupsafe import Markup

from playground.core.experiment import Forecast
from playground.core.holding import Holding
from playground.core.units import bytes_text, bytes_texts, seconds_text
from playground.views.cards import card, emphasised, term_list

Text = Mapping[str, str]


def holding(found: Holding, text: Text, reasons: Mapping[str, str], running: bool = False) -> Markup:
    """The measured bytes, what they are, and why they differ from the arithmetic where they do."""
    big = bytes_text(found.used_bytes) if found.used_bytes is not None else text["not_measurable"]
    said = [_held(found, text), *(reasons.get(reason.key, reason.text) for reason in found.reasons)]
    title = text["live_title" if found.lanes else "live_title_empty"]
    body = Markup('<p class="kv-big">{}</p><p class="kv-finding">{}</p>{}').format(
        big, emphasised(text["join"].join(said)), term_list(_terms(found, text))
    )
    return card(text["live_running"] if running else title, body)


def _held(found: Holding, text: Text) -> str:
    name = found.model.name.rpartition("/")[2][:80]
    if not found.lanes:
        return text["live_empty"].format(model=name, dtype=found.model.dtype)
    answer = found.tokens - found.prompt_tokens * found.lanes
    key = "live_one" if found.lanes == 1 else "live_lanes"
    said = text[key].format(
        model=name, dtype=found.model.dtype, tokens=f"{found.tokens:,}", prompt=f"{found.prompt_tokens:,}",
        answer=f"{answer:,}", lanes=found.lanes,
    )  # fmt: skip
    if found.equal is None:
        return said
    return said + text["join"] + text["live_equal" if found.equal else "live_differs"]


def _terms(found: Holding, text: Text) -> list[tuple[str, str, str]]:
    counts = (found.used_bytes, found.predicted_bytes, found.allocated_bytes)
    shown = bytes_texts(*counts)
    names = (("used", "measured"), ("predicted", "computed"), ("allocated", "measured"))
    rows = [
        (text[name], value if count is not None else text["not_measurable"], _how(count, text[origin], text))
        for (name, origin), value, count in zip(names, shown, counts, strict=True)
    ]
    if found.state_bytes or found.predicted_state_bytes:
        said = text["state_what"].format(predicted=bytes_text(found.predicted_state_bytes))
        value = text["not_measurable"] if found.state_bytes is None else bytes_text(found.state_bytes)
        rows.append((text["part_state"], value, said))
    return rows


def _how(count: int | None, origin: str, text: Text) -> str:
    if count is None:
        return ""
    return origin if count < 1024 else text["exact_how"].format(bytes=f"{count:,}", how=origin)


def nothing(text: Text) -> Markup:
    """No model is there yet, so that there is nothing to measure."""
    return card(text["live_title_empty"], Markup('<p class="kv-finding">{}</p>').format(text["live_none"]))


def outlook(found: Forecast, text: Text) -> Markup:
    """What comes first at this pace, the end of the context or that of memory."""
    said = [_until(found, "context", text), _until(found, "memory", text)]
    if found.limit is not None and None not in (found.tokens_until_context, found.tokens_until_memory):
        said.append(text[f"first_{found.limit}"])
    body = Markup('<p class="kv-finding">{}</p>').format(emphasised(text["join"].join(filter(None, said))))
    return card(text["outlook"], body) if any(said) else Markup("")


def _until(found: Forecast, limit: str, text: Text) -> str:
    tokens, seconds = getattr(found, f"tokens_until_{limit}"), getattr(found, f"seconds_until_{limit}")
    if tokens is None:
        return (
            text["memory_enough"]
            if limit == "memory" and found.free_bytes and found.bytes_next_token == 0
            else ""
        )
    said = text[f"until_{limit}"].format(
        tokens=f"{tokens:,}", context=f"{found.context_tokens or 0:,}", free=bytes_text(found.free_bytes)
    )
    return said + text["stop" if seconds is None else "until_time"].format(time=_long(seconds))


def _long(seconds: float | None) -> str:
    """A time that may be hours."""
    if seconds is None or seconds < 120:
        return seconds_text(seconds)
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.0f} h"
