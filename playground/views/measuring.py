"""The words around an experiment as markup: how far it is, what it ran on, what went wrong.

Everything that comes in is escaped: a model's name is whatever somebody wrote into a file.
"""

from collections.abc import Mapping

from markupsafe import Markup

from playground.core.experiment import Conditions
from playground.core.metrics import Timing
from playground.core.units import seconds_text

Text = Mapping[str, str]

_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def progress_line(sentence: str, share: float | None) -> Markup:
    """One line about work that goes on, and a bar; without a `share` the bar stays empty."""
    return Markup(
        '<p class="measuring" role="status">{}</p><div class="measuring-bar" aria-hidden="true">'
        '<i style="width:{}%"></i></div>'
    ).format(sentence, round(100 * min(1.0, share or 0.0), 1))


def said_line(sentence: str) -> Markup:
    """What is to be done where there is nothing yet."""
    return Markup('<p class="measuring-said">{}</p>').format(sentence)


def refused_line(sentence: str) -> Markup:
    """What could not be done, in the place where the result would be."""
    return Markup('<p class="measuring-refused" role="alert">{}</p>').format(sentence)


def conditions_line(found: Conditions, text: Text) -> Markup:
    """What was measured on, and the first forward, which is in no other time."""
    key = "conditions" if found.threads is None else "conditions_threads"
    dtype = _DTYPES.get(found.dtype, found.dtype)
    said = [text[key].format(model=found.model, dtype=dtype, device=found.device, threads=found.threads)]
    if found.warm_up_seconds is not None:
        key = "first_forward" if found.warm_before else "warm_up"
        said.append(text[key].format(time=seconds_text(found.warm_up_seconds)))
    return Markup('<p class="conditions">{}</p>').format(text["join"].join(said))


def rates_table(runs: list[tuple[str, Timing]], text: Text) -> Markup:
    """Times and rates of runs, a row each: prefill and decode never in one number."""
    names = ("run", "ttft", "itl_p50", "itl_p95", "prefill_rate", "decode_rate")
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(text[f"column_{name}"]) for name in names)
    body = Markup("").join(_rates_row(name, times, text) for name, times in runs)
    return Markup(
        '<div class="rates" tabindex="0" role="region" aria-label="{}"><table><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(text["rates"], head, body)


def _rates_row(name: str, times: Timing, text: Text) -> Markup:
    warm = Markup(" <small>{}</small>").format(text["with_warm_up"]) if times.warm_up else ""
    cells = (
        seconds_text(times.time_to_first_token_seconds), seconds_text(times.inter_token_median_seconds),
        seconds_text(times.inter_token_p95_seconds), _rate(times.prefill_tokens_per_second),
        _rate(times.decode_tokens_per_second),
    )  # fmt: skip
    values = Markup("").join(Markup("<td>{}</td>").format(text.get(cell, cell)) for cell in cells)
    return Markup('<tr><th scope="row">{}{}</th>{}</tr>').format(name, warm, values)


def _rate(tokens_per_second: float | None) -> str:
    if tokens_per_second is None:
        return "unknown"
    return f"{tokens_per_second:,.1f}" if tokens_per_second < 100 else f"{tokens_per_second:,.0f}"
