"""Figures as pure functions: what they say, what stands behind them, what plotly is given."""

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from playground import settings
from playground.core.events import Stepped
from playground.core.fit import Curve
from playground.core.race import Race, Ticked
from playground.core.run import fold
from playground.core.tables import Table
from playground.ui.text import LANGUAGES, sections
from playground.views.figures.capacity import CAPACITY
from playground.views.figures.capacity import rows as capacity_rows
from playground.views.figures.drilldown import Drilldown, levels
from playground.views.figures.frame import csv_text, emphasised, foot, head
from playground.views.figures.growth import GROWTH, Growth
from playground.views.figures.held import HELD
from playground.views.figures.numbers import amount, cell_text, figures_text, power_text
from playground.views.figures.palette import palette
from playground.views.figures.peak import PEAK
from playground.views.figures.phases import PHASES, Phases, article_case
from playground.views.figures.prefill import PREFILL
from playground.views.figures.race import RACE_STEPS
from playground.views.figures.steps import STEPS
from tests.browser.conftest import made_run
from tests.figures_made import HOSTILE, MADE, cache_of, llama_capacity, prefill_curve

TEXT = {language: sections(language)["figures"] for language in LANGUAGES}
EN = TEXT["en"]


def drawn(name: str, theme: Any = "light", language: str = "en") -> dict[str, Any]:
    """The figure as the page gets it."""
    chart, make = MADE[name]
    assert chart.figure is not None
    return json.loads(chart.figure(make(), TEXT[language], theme).to_json())


PLOTTED = [name for name, (chart, _) in MADE.items() if chart.figure is not None]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", MADE)
def test_a_finding_a_table_and_its_csv(name: str, language: str) -> None:
    """Case 39: the page's table and the export come from the same rows, in the same units."""
    chart, make = MADE[name]
    value, text = make(), TEXT[language]
    said = chart.sentence(value, text)
    assert (
        re.search(r"\d", said)
        and said.count("**") % 2 == 0
        and not re.search(r"\{\w+\}", said.replace(HOSTILE, ""))
    )
    table = chart.rows(value)
    assert table.rows and all(len(row) == len(table.header) for row in table.rows)
    read = list(csv.reader(io.StringIO(csv_text(table))))
    assert read[0] == list(table.header) and len(read) == len(table.rows) + 1
    below = str(foot(chart, value, text))
    assert below.count("<tr>") == len(table.rows) + 1
    assert ("data-picture" in below) == (chart.figure is not None)


@pytest.mark.parametrize("name", PLOTTED)
def test_no_template_no_zoom_and_colours_of_the_theme_alone(name: str) -> None:
    for theme in ("light", "dark"):
        figure = drawn(name, theme)
        layout = figure["layout"]
        assert len(json.dumps(layout.get("template", {}))) < 100 and "title" not in layout
        assert all(axis["fixedrange"] for key, axis in layout.items() if re.match(r"[xy]axis", key))
        assert set(re.findall(r"#[0-9a-f]{6}", json.dumps(figure))) <= set(palette(theme).values())


@pytest.mark.parametrize("name", PLOTTED)
def test_every_colour_has_its_rule_for_the_dark(name: str) -> None:
    """The page draws in light colours; `figure.css` must know each of them, with the token's own value."""
    style = (settings.assets_dir() / "figure.css").read_text("utf-8")
    light = palette("light")
    for colour in set(re.findall(r"#[0-9a-f]{6}", json.dumps(drawn(name)))):
        numbers = ", ".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))
        for part in ("fill", "stroke"):
            rule = re.search(
                rf'\[style\*="{part}: rgb\({numbers}\)"\] {{ {part}: var\(--ft-([\w-]+)\) !important; }}',
                style,
            )
            assert rule is not None, f"{colour} has no rule for {part}"
            assert light[rule[1]] == colour


@pytest.mark.parametrize("name", MADE)
def test_a_name_is_shown_literally(name: str) -> None:
    """Case 7: names from a config are text, in sentence, table and drawing."""
    chart, make = MADE[name]
    value = make()
    markup = str(head(chart, value, EN)) + str(foot(chart, value, EN))
    assert "<img" not in markup
    if chart.figure is not None:
        assert "<img" not in chart.figure(value, EN, "light").to_json()


def test_a_formula_in_a_cell_stays_text() -> None:
    written = csv_text(Table(("name", "n"), (("=1+1", -3), ("@x", None))))
    assert written == "name,n\n'=1+1,-3\n'@x,\n"


def test_emphasis_is_made_after_escaping() -> None:
    assert str(emphasised("**5 < 6** & <b>")) == "<b>5 &lt; 6</b> &amp; &lt;b&gt;"


def test_quantities_carry_their_unit() -> None:
    assert cell_text("used_bytes", 16_777_216_000) == "15.6 GiB"
    assert cell_text("median_seconds", 0.0362) == "36 ms"
    assert cell_text("prefill_share", 0.0704) == "7.04 %"
    assert cell_text("tokens", 4096) == "4,096"
    assert cell_text("flops_per_second", 1.9e11) == "190 GFLOP/s"
    assert power_text(26e9, "B/s") == "26 GB/s"
    assert [figures_text(v) for v in (227.4, 29.81, 1.8712, 0.5)] == ["227", "29.8", "1.87", "0.5"]
    assert amount(4096, 1, EN) == "4,096 tokens" and amount(4096, 32, EN) == "32\u00a0×\u00a04,096 tokens"


def test_the_prefill_curve_names_crossover_and_quadratic_part() -> None:
    said = PREFILL.sentence(prefill_curve(), EN)
    share = 9e-8 * 4096**2 / (0.02 + 1.3e-3 * 4096 + 9e-8 * 4096**2)
    assert f"**{share:.0%}**".replace("%", " %") in said and "63,487" in said and "**6,134 tokens**" in said
    names = [trace["name"] for trace in drawn("prefill")["data"]]
    assert names == [EN[key] for key in ("prefill_total", "prefill_linear", "prefill_quadratic", "measured")]


def test_a_quadratic_part_that_does_not_stand_out_is_not_drawn() -> None:
    traces = {trace["name"]: trace for trace in drawn("prefill, cut short")["data"]}
    assert EN["prefill_quadratic"] not in traces
    assert traces[EN["estimated"]]["line"]["dash"] == "dash"
    assert max(traces[EN["estimated"]]["x"]) == 8192
    assert EN["prefill_not_separable"] in PREFILL.sentence(prefill_curve(fitted="not_separable"), EN)


def test_too_few_lengths_are_points_alone() -> None:
    found = prefill_curve(curve=None, fitted="too_few")
    assert EN["prefill_too_few"] in PREFILL.sentence(found, EN)
    assert PREFILL.figure is not None
    assert [trace["name"] for trace in json.loads(PREFILL.figure(found, EN, "light").to_json())["data"]] == [
        "measured"
    ]


def test_a_crossover_within_the_figure_is_marked() -> None:
    found = prefill_curve(crossover_tokens=1000.0, curve=Curve(0.02, 1.3e-3, 9e-8, 1e-9, True))
    assert PREFILL.figure is not None
    layout = json.loads(PREFILL.figure(found, EN, "light").to_json())["layout"]
    assert layout["shapes"][0]["x0"] == 1000 and "1,000" in layout["annotations"][0]["text"]


def test_a_peak_sets_measured_beside_computed_and_names_the_hidden_one() -> None:
    said, words = PEAK.sentence(MADE["peak"][1](), EN), json.dumps(drawn("peak")["layout"])
    assert "**760 MiB** at its peak, measured; its parts predict 620 MiB" in said
    assert "logits of every position is the classic hidden peak: they would be **384 MiB**" in said
    assert "made the peak **1.12 GiB**, 390 MiB more (measured)" in said
    assert "KV cache, measured <b>90 MiB</b> (computed 90 MiB)" in words
    assert "the rest, measured <b>120 MiB</b> (estimated 9 MiB)" in words
    guessed = PEAK.sentence(MADE["peak, estimated"][1](), EN)
    assert "estimated from its parts" in guessed and "measured" not in guessed


def test_layers_measured_stand_beside_the_computed_ones() -> None:
    said, words = HELD.sentence(MADE["held"][1](), EN), json.dumps(drawn("held")["layout"])
    assert "6 × sliding window, the last 128: 9 MiB where the arithmetic says 10 MiB." in said
    assert "12 × full attention:" not in said, "as computed"
    assert "sliding window <b>9 MiB</b> (computed 10 MiB)" in words
    kept, bare, total = HELD.rows(MADE["held"][1]()).rows
    assert kept[:5] == (0, "full", None, 2_621_440, 2_621_440) and bare[3] is None and total[0] == "total"


def test_phases_shares_add_up_and_the_typical_chat_is_estimated() -> None:
    found = (Phases(100, 500, 1.0, 99.0),)
    assert "**1.0 %**" in PHASES.sentence(found, EN) and "**99.0 %**" in PHASES.sentence(found, EN)

    class Rates:
        prefill_tokens_per_second, decode_tokens_per_second = 200.0, 10.0

    case = article_case(Rates())  # type: ignore[arg-type]
    assert case == Phases(100, 500, 0.5, 49.9, "estimated")
    assert EN["phases_estimated"].split("{")[0] in PHASES.sentence((case,), EN)


def test_growth_flattens_at_the_windows() -> None:
    """Case 36: used stops growing in windowed layers, allocated does not; both are named."""
    found = Growth("gpt-oss-120b", cache_of("gpt-oss-120b"), 1000)
    used, allocated = drawn("growth")["data"]
    assert EN["used"] in used["name"] and EN["allocated"] in allocated["name"]
    at = {row[0]: row for row in GROWTH.rows(found).rows}
    assert at[128][1] == at[128][2] == 128 * 73_728
    assert at[1000][1] == 1000 * 36_864 + 128 * 36_864 and at[1000][2] == 1000 * 73_728
    assert "36 KiB, not 72 KiB" in GROWTH.sentence(found, EN)


def test_one_token_of_llama_from_key_to_all_layers() -> None:
    """Case 34: 256, 512, 4,096 and 131,072 bytes, and 512 MiB for 4,096 tokens."""
    found = levels(Drilldown("Llama-3.1-8B", cache_of("llama-3.1-8b"), 4096))
    assert [(level.count, level.bytes) for level in found] == [
        (128, 256), (2, 512), (8, 4096), (32, 131_072), (4096, 512 * 2**20)
    ]  # fmt: skip
    latent = levels(Drilldown("DeepSeek-V3", cache_of("deepseek-v3"), 1))
    assert [(level.key, level.bytes) for level in latent] == [("latent", 1152), ("layers", 70_272)]


def test_what_fits_is_said_in_words_and_agrees_with_the_plan() -> None:
    found = llama_capacity()
    needed = found.needed_bytes(32, 4096)
    assert needed is not None and needed > 16_060_522_496 + 16 * 2**30
    assert "fit**" in CAPACITY.sentence(found, EN)
    users, context = found.most_users(), found.longest_context()
    assert users is not None and found.fits(users, 4096) and not found.fits(users + 1, 4096)
    assert context is not None and found.fits(32, context) and not found.fits(32, context + 1)
    words = {row[-1] for row in capacity_rows(found).rows}
    assert words == {"fits", "too_much"}
    assert CAPACITY.markup is not None
    assert EN["cell_too_much"] in CAPACITY.markup(found, EN)


def test_nothing_is_said_to_fit_where_the_weights_are_unknown() -> None:
    from playground.core.fits import Plan

    found = llama_capacity(plan=Plan({}, cache_of("llama-3.1-8b"), None))
    assert found.fits(1, 1024) is None
    assert {row[-1] for row in capacity_rows(found).rows} == {"unknown"}
    assert "not known" in CAPACITY.sentence(found, EN)


def test_an_experiment_without_points_says_so() -> None:
    from playground.core.experiment import StepCurve
    from tests.figures_made import CONDITIONS

    empty = StepCurve(CONDITIONS, (), ())
    assert STEPS.sentence(empty, EN) == EN["nothing_measured"]
    assert STEPS.figure is not None and STEPS.figure(empty, EN, "light") is not None


def _race(steps: int) -> Race:
    """Steps of 30 ms with the cache, and 10 ms longer at each step without."""
    sides = []
    for name, seconds in ((".cached", lambda step: 0.03), (".uncached", lambda step: 0.03 + 0.01 * step)):
        events, start = [], 0.08
        for event in made_run(steps).events:
            changed: dict[str, Any] = {"run": f"race{name}"}
            if isinstance(event, Stepped):
                changed |= {"start_seconds": start, "end_seconds": start + seconds(event.step)}
                start = changed["end_seconds"]
            events.append(replace(event, **changed))
        sides.append(fold(events))
    return Race(*sides, [Ticked(step, True, 1e-5) for step in range(steps)])


def test_a_finished_race_is_flat_against_rising() -> None:
    found = _race(9)
    table = RACE_STEPS.rows(found)
    assert [row[0] for row in table.rows] == list(range(1, 9))
    assert [row[2] for row in table.rows] == pytest.approx([0.03] * 8)
    assert [row[3] for row in table.rows] == pytest.approx([0.03 + 0.01 * step for step in range(1, 9)])
    said = RACE_STEPS.sentence(found, EN)
    assert "**240 ms** with the cache, **600 ms** without, 2.5 times" in said and "All 9 tokens" in said
    assert RACE_STEPS.figure is not None
    without, cached = json.loads(RACE_STEPS.figure(found, EN, "light").to_json())["data"]
    assert without["y"] == [row[3] for row in table.rows] and cached["y"] == [row[2] for row in table.rows]
    assert RACE_STEPS.sentence(Race(), EN) == EN["nothing_measured"]
