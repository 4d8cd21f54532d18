"""The same prompt read in one prefill and token by token: the two times, one bar each."""

from statistics import median
from typing import Any

from playground.core.experiment import OneByOne
from playground.core.tables import table
from playground.core.units import seconds_text
from playground.views.figures.chart import Chart, Text
from playground.views.figures.numbers import figures_text, small_text
from playground.views.figures.palette import Theme, palette
from playground.views.figures.rows_of_bars import Bar, bars


def sentence(found: OneByOne, text: Text) -> str:
    """How many times as long it took token by token, and whether the result is the same."""
    said = [
        text["one_ratio"].format(
            tokens=f"{found.tokens:,}", together=seconds_text(median(found.prefill_seconds)),
            alone=seconds_text(median(found.one_by_one_seconds)), ratio=figures_text(found.ratio),
        ),
        text["one_reads"].format(
            together=f"{found.prefill_weight_reads:,}", alone=f"{found.one_by_one_weight_reads:,}"
        ),
        text["one_same" if found.same_choice else "one_other"].format(
            difference=small_text(found.max_logit_difference)
        ),
    ]  # fmt: skip
    return text["join"].join(said)


def figure(found: OneByOne, text: Text, theme: Theme) -> Any:
    """Prefill in violet, one by one in the colour of decoding."""
    colours = palette(theme)
    ways = (
        ("one_together", found.prefill_seconds, "prefill"),
        ("one_alone", found.one_by_one_seconds, "bar-thin"),
    )
    drawn = [
        Bar(text[key].format(tokens=f"{found.tokens:,}"), seconds_text(median(times)), median(times), colours[colour])
        for key, times, colour in ways
    ]  # fmt: skip
    return bars(drawn, colours)


ONE_BY_ONE = Chart("one_by_one", sentence, table, figure)
