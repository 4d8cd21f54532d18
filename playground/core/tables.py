"""Experiments as JSON, as rows of a plain table, and as CSV: one form for page, files and scripts.

Column names carry their units. Knows the values of `experiment` and nothing that draws them.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from playground.core.cost import Cost
from playground.core.experiment import (
    Experiment,
    Forecast,
    KvRecheck,
    LaneCurve,
    OneByOne,
    PeakMemory,
    PrefillCurve,
    Roofline,
    StepCurve,
    Timed,
    origins,
)

Cell = str | int | float | None


@dataclass(frozen=True, slots=True)
class Table:
    """A header of names with units, and rows as long as it; None is unknown."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def csv(self) -> str:
        """As CSV with a header line; an unknown cell is empty."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self.header, *self.rows])
        return text.getvalue()


_NAMES = {
    PrefillCurve: "prefill_curve", StepCurve: "step_curve", LaneCurve: "lane_curve", OneByOne: "one_by_one",
    Roofline: "roofline", KvRecheck: "kv_recheck", Forecast: "forecast", PeakMemory: "peak_memory",
}  # fmt: skip
_VARIED = {PrefillCurve: "prompt_tokens", StepCurve: "context_tokens", LaneCurve: "lanes"}


def table(found: Experiment) -> Table:
    """The numbers of `found`, one row a place, a way, a layer or a part."""
    match found:
        case PrefillCurve() | StepCurve() | LaneCurve():
            return _curve(found)
        case OneByOne():
            return _one_by_one(found)
        case Roofline():
            return _roofline(found)
        case KvRecheck():
            return Table(("layer", "largest_difference"), tuple(enumerate(found.differences)))
        case Forecast():
            known = origins(found)
            rows = tuple((name, getattr(found, name), origin) for name, origin in known.items())
            return Table(("quantity", "value", "origin"), rows)
        case PeakMemory():
            return _peak(found)


def _curve(found: PrefillCurve | StepCurve | LaneCurve) -> Table:
    header: tuple[str, ...] = (
        _VARIED[type(found)], "median_seconds", "measurements", "least_seconds", "most_seconds", "flops",
        "bytes_read",
    )  # fmt: skip
    costs: Sequence[Cost | None] = found.costs or [None] * len(found.points)
    rows = [_place(point, cost) for point, cost in zip(found.points, costs, strict=True)]
    if isinstance(found, PrefillCurve) and found.curve is not None:
        header += ("constant_seconds", "linear_seconds", "quadratic_seconds")
        rows = [(*row, *found.curve.parts(point.n)) for row, point in zip(rows, found.points, strict=True)]
    return Table(header, tuple(rows))


def _place(point: Timed, cost: Cost | None) -> tuple[Cell, ...]:
    times = point.seconds
    known = (cost.flops, cost.bytes) if cost is not None else (None, None)
    return (point.n, point.median_seconds, len(times), min(times), max(times), *known)


def _one_by_one(found: OneByOne) -> Table:
    ways = (
        ("one prefill", found.prefill_seconds, found.prefill_weight_reads),
        ("one by one", found.one_by_one_seconds, found.one_by_one_weight_reads),
    )
    header = ("way", "tokens", "median_seconds", "measurements", "weight_reads")
    return Table(
        header,
        tuple(
            (way, found.tokens, Timed(found.tokens, seconds).median_seconds, len(seconds), reads)
            for way, seconds, reads in ways
        ),
    )


def _roofline(found: Roofline) -> Table:
    header: tuple[str, ...] = (
        "forward", "tokens", "lanes", "seconds", "flops", "bytes_read", "flops_per_byte", "flops_per_second",
        "attainable_flops_per_second", "waits_for", "share_of_floor", "bandwidth_share", "compute_share",
    )  # fmt: skip
    rows = tuple(
        (
            point.name, point.tokens, point.lanes, point.seconds, point.cost.flops, point.cost.bytes,
            point.intensity, point.flops_per_second, point.attainable_flops_per_second, point.verdict.limit,
            point.verdict.share, point.verdict.bandwidth_share, point.verdict.compute_share,
        )
        for point in found.points
    )  # fmt: skip
    return Table(header, rows)


def _peak(found: PeakMemory) -> Table:
    """What was measured beside what was not; the origin is that of the latter."""
    rows: list[tuple[Cell, ...]] = [
        (
            part.name,
            part.bytes if part.origin == "measured" else None,
            part.predicted_bytes,
            part.predicted_origin,
        )
        for part in found.parts
    ]
    measured = found.total_origin == "measured"
    extra = found.logits_of_all_bytes - sum(part.bytes or 0 for part in found.parts if part.name == "logits")
    all_rows = None if found.predicted_bytes is None else found.predicted_bytes + extra
    rows += [
        ("total", found.total_bytes if measured else None, found.predicted_bytes, "estimated"),
        ("logits of every position", None, found.logits_of_all_bytes, "computed"),
        ("total with logits of every position", found.all_logits_bytes, all_rows, "estimated"),
    ]
    return Table(("part", "measured_bytes", "predicted_bytes", "origin"), tuple(rows))
