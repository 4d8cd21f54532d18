"""Experiments as values: origins, JSON that is strict, tables and CSV."""

import csv
import io
import json
from dataclasses import fields
from typing import Any, get_args

import pytest

from playground.core.cost import Cost, Device, Verdict
from playground.core.experiment import (
    Absent,
    Conditions,
    Experiment,
    Forecast,
    KvRecheck,
    LaneCurve,
    OneByOne,
    PeakMemory,
    PrefillCurve,
    Roofline,
    RooflinePoint,
    StepCurve,
    Timed,
    origins,
)
from playground.core.fit import quadratic_fit
from playground.core.kv import CacheSpec, LayerSpec
from playground.core.peak import peak_memory
from playground.core.tables import table

ON = Conditions("tiny", "CPU, 2 cores", "float32", 2, 0.5)
POINTS = tuple(Timed(n, (n / 100, n / 50, n / 99)) for n in (1, 2, 4, 8))
COSTS = tuple(Cost(10 * point.n, 7, point.n) for point in POINTS)
FOUND: tuple[Experiment, ...] = (
    PrefillCurve(
        ON, POINTS, COSTS, quadratic_fit([(p.n, p.median_seconds) for p in POINTS]), "not_separable", 900,
        53248, (Absent(16, "time"),),
    ),
    PrefillCurve(ON, POINTS[:1], (), None, "too_few", None, 53248),
    StepCurve(ON, POINTS, COSTS),
    LaneCurve(ON, 64, POINTS, COSTS),
    OneByOne(ON, 64, (0.1, 0.2), (1.0, 1.2), 1e-5, True, 1, 64),
    Roofline(
        ON, Device(10.0, 100.0),
        (RooflinePoint("decode", 5, 0.1, Cost(10, 4, 1), 100.0, 20.0, Verdict("overhead", 1, 0.1, 0.1, 0.1)),),
    ),
    KvRecheck(ON, 64, 2, (0.0, 1e-6), 3.0, "recheck_rounding"),
    Forecast(4, 1, 100, None, 64, 96, None, 9.6, None, "context"),
    peak_memory(ON, 100, weights_bytes=1000, vocabulary=50, kv_bytes=64, state_bytes=0, total_bytes=2000),
)  # fmt: skip


def test_every_kind_is_tried() -> None:
    assert {type(found) for found in FOUND} == set(get_args(Experiment))


@pytest.mark.parametrize("found", FOUND, ids=lambda found: type(found).__name__)
def test_its_fields_tell_where_they_come_from(found: Experiment) -> None:
    told = origins(found)
    assert set(told) <= {f.name for f in fields(found)}
    assert set(told.values()) <= {"measured", "computed", "estimated"}
    shown = table(found)
    assert shown.rows and all(len(row) == len(shown.header) for row in shown.rows)
    json.dumps(shown.rows, allow_nan=False)


@pytest.mark.parametrize("found", FOUND, ids=lambda found: type(found).__name__)
def test_csv_reads_back_as_the_table(found: Experiment) -> None:
    shown = table(found)
    header, *rows = csv.reader(io.StringIO(shown.csv()))
    assert tuple(header) == shown.header
    assert rows == [["" if cell is None else str(cell) for cell in row] for row in shown.rows]


@pytest.mark.parametrize("kind", get_args(Experiment))
def test_nothing_but_settings_is_without_an_origin(kind: Any) -> None:
    settings = {"conditions", "absent", "context_tokens", "tokens", "positions", "layers", "logit_rows",
                "total_origin"}  # fmt: skip
    assert {f.name for f in fields(kind)} - set(origins(kind)) <= settings


def test_medians() -> None:
    assert POINTS[1].median_seconds == 2 / 99
    assert FOUND[4].ratio == pytest.approx(1.1 / 0.15)  # type: ignore[union-attr]
    assert FOUND[6].largest_difference == 1e-6  # type: ignore[union-attr]


def test_a_peak_adds_up() -> None:
    """Case: 100 positions x 50 entries x 4 bytes were every row of logits asked for; ours asks for one."""
    found = FOUND[-1]
    assert isinstance(found, PeakMemory)
    parts = {part.name: (part.bytes, part.origin) for part in found.parts}
    assert parts["logits"] == (200, "computed")
    assert parts["rest"] == (2000 - 1000 - 64 - 200, "measured")
    assert sum(part.bytes or 0 for part in found.parts) == found.total_bytes == 2000
    assert found.logits_of_all_bytes == 20_000


def test_a_peak_that_was_not_seen_is_estimated() -> None:
    """Where less was seen than the parts need, the measurement is no peak and is not shown as one."""
    for seen in (None, 1100):
        found = peak_memory(
            ON, 100, weights_bytes=1000, vocabulary=50, kv_bytes=64, state_bytes=0, total_bytes=seen,
            rest_bytes=36,
        )  # fmt: skip
        assert (found.total_bytes, found.total_origin) == (1300, "estimated")
        assert found.parts[-1].origin == "estimated"
    unknown = peak_memory(ON, 100, weights_bytes=1000, vocabulary=50)
    assert unknown.total_bytes is None and unknown.parts[1].bytes is None


def test_a_measured_peak_stands_beside_the_predicted_one() -> None:
    """The weights, the cache by its shape, the logits, and an estimate of the rest; and the hidden peak."""
    spec = CacheSpec((LayerSpec("full", 2, 4),), 2, "float32")
    found = peak_memory(
        ON, 100, weights_bytes=1000, vocabulary=50, spec=spec, kv_bytes=6400, state_bytes=0, total_bytes=9000,
        rest_bytes=300, predicted_weights_bytes=1000, all_logits_bytes=28_000,
    )  # fmt: skip
    assert [(part.name, part.bytes, part.predicted_bytes) for part in found.parts] == [
        ("weights", 1000, 1000), ("kv", 6400, 100 * 64), ("state", 0, 0), ("logits", 200, 200), ("rest", 1400, 300),
    ]  # fmt: skip
    assert found.predicted_bytes == 1000 + 6400 + 200 + 300
    rows = {row[0]: row[1:] for row in table(found).rows}
    assert rows["rest"] == (1400, 300, "estimated")
    assert rows["logits"] == (None, 200, "computed"), "of rows of logits nothing was measured"
    assert rows["total with logits of every position"] == (28_000, 7900 + 20_000 - 200, "estimated")
