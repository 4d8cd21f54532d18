"""The phases of a run: times, shares, costs of the step that took the median time, verdicts."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from playground.core.cost import Device, chunked_cost, decode_cost, prefill_cost
from playground.core.events import Prefilling, Stepped
from playground.core.phases import phases
from playground.core.run import Run, fold
from tests.core.test_cost import SHAPE

DEVICE = Device(1000.0, 10_000.0)


def test_the_bar_is_of_both_phases(run_of: Callable[..., Run]) -> None:
    """Prefill 2.0 s, ten decode steps of 0.1 s."""
    found = phases(run_of(list(range(11))))
    assert found.prefill is not None and found.decode is not None
    assert (found.prefill.seconds, found.prefill.tokens) == (2.0, 2000)
    assert found.decode.seconds == pytest.approx(1.0) and found.decode.tokens == 10
    assert found.prefill_share == pytest.approx(2 / 3)
    assert (found.prefill.cost, found.prefill.verdict, found.decode.verdict) == (None, None, None)


def test_a_run_without_tokens_has_no_decode(run_of: Callable[..., Run]) -> None:
    assert phases(Run()).prefill_share is None
    one = phases(run_of([5]))
    assert one.decode is None and one.prefill_share == 1.0


def test_costs_and_verdicts_are_of_the_median_step_and_all_its_lanes(
    run_of: Callable[..., Run], step_of: Callable[..., Stepped]
) -> None:
    run = run_of([1, 2, 3], [1, 2, 3], [1], finish=False)
    found = phases(run, SHAPE, DEVICE)
    assert found.decode is not None and found.decode.verdict is not None
    assert found.decode.cost in (decode_cost(SHAPE, 5, 2), decode_cost(SHAPE, 6, 2))
    assert found.decode.forward_seconds == pytest.approx(0.1)
    assert found.decode.verdict.share == pytest.approx(
        found.decode.cost.bytes / 1000 / found.decode.forward_seconds
    )


def test_a_prefill_costs_its_chunks(run_of: Callable[..., Run]) -> None:
    run = run_of([1])
    known = [Prefilling("r", end, 2010, 0.1) for end in (266, 2010)]
    assert phases(fold([run.events[0], *known, *run.events[1:]]), SHAPE).prefill.cost == chunked_cost(  # type: ignore[union-attr]
        SHAPE, [266, 2010], 10
    )
    assert phases(run, SHAPE).prefill.cost == prefill_cost(SHAPE, 2000, 10)  # type: ignore[union-attr]


def test_a_step_without_a_cache_reads_the_whole_text(run_of: Callable[..., Run]) -> None:
    run = run_of([1, 2])
    events = [
        replace(e, positions_computed=4 + e.step, positions_reused=0) if isinstance(e, Stepped) else e
        for e in run.events
    ]
    found = phases(fold(events), SHAPE, DEVICE).decode
    assert found is not None and found.cost == prefill_cost(SHAPE, 5)


def test_a_recording_without_times_has_no_verdict(run_of: Callable[..., Run]) -> None:
    run = run_of([1, 2])
    events = [
        replace(e, start_seconds=0.0, end_seconds=0.0) if hasattr(e, "end_seconds") else e for e in run.events
    ]
    found = phases(fold(events), SHAPE, DEVICE)
    assert found.decode is not None and found.decode.verdict is None
    assert found.prefill_share is None
