"""Experiments on tiny models: what is read, in what order, what is counted, what stops them. No speed."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from playground.backends.local import LocalBackend
from playground.backends.protocol import BackendError, Measurer
from playground.core.control import Control
from playground.core.cost import Device, chunked_cost, decode_cost
from playground.core.decoding import InvalidSetting
from playground.core.experiment import (
    Absent,
    KvRecheck,
    LaneCurve,
    OneByOne,
    PeakMemory,
    PrefillCurve,
    Progressed,
    Roofline,
    StepCurve,
)
from playground.core.tables import table
from playground.engine import experiments, peaking, trial
from playground.engine.costing import cost_shape
from playground.engine.experiments import (
    EXPERIMENTS,
    CannotMeasure,
    kv_recheck,
    lane_curve,
    one_by_one,
    peak_memory,
    prefill_curve,
    roofline,
    step_curve,
)
from playground.engine.model import LoadedModel
from playground.engine.trial import chunk_ends, rounds
from tests.engine.families import FAMILIES, WITH_STATE, tiny

SMALL: dict[str, dict[str, Any]] = {
    "prefill": {"lengths": (4, 20, 40), "repeats": 2},
    "steps": {"contexts": (4, 20, 40), "repeats": 2},
    "lanes": {"lanes": (1, 3), "context_tokens": 24, "repeats": 2},
    "one-by-one": {"tokens": 20, "repeats": 1},
    "roofline": {"prompt_tokens": 20, "repeats": 1, "lanes": (1, 2)},
    "recheck": {"prompt_tokens": 20, "new_tokens": 4},
    "peak": {"tokens": 40},
}


@pytest.fixture(autouse=True)
def no_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "probe", lambda _: Device(1e9, 1e10))


def last(items: Iterator[Any]) -> Any:
    *progress, value = items
    assert progress and all(isinstance(item, Progressed) for item in progress)
    assert [item.done for item in progress] == sorted(item.done for item in progress)
    assert progress[-1].done == progress[-1].total
    return value


def forwards(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Rows and positions of every forward from now on."""
    seen: list[tuple[int, int]] = []
    original = LoadedModel.forward

    def forward(self: LoadedModel, ids: Any, cache: Any) -> Any:
        assert threading.current_thread().name.startswith("forwards")
        assert torch.is_inference_mode_enabled() and not ids.is_floating_point()
        seen.append(tuple(ids.shape))
        return original(self, ids, cache)

    monkeypatch.setattr(LoadedModel, "forward", forward)
    return seen


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_on_every_family(family: str, name: str) -> None:
    model = tiny(family)
    if name == "recheck" and not any(layer.kv_heads for layer in model.spec.layers):  # type: ignore[union-attr]
        with pytest.raises(CannotMeasure, match="keeps no keys and values"):
            list(EXPERIMENTS[name](model, **SMALL[name]))
        return
    value = last(EXPERIMENTS[name](model, **SMALL[name]))
    assert value.conditions.model == "tiny" and value.conditions.dtype == "float32"
    assert value.conditions.warm_up_seconds > 0
    assert table(value).rows
    assert model.warm


def test_a_prefill_curve_reads_as_a_run_does(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    seen = forwards(model, monkeypatch)
    found = last(prefill_curve(model, lengths=(300, 8, 600), repeats=2))
    assert isinstance(found, PrefillCurve)
    small, middle, large = [(1, 8)], [(1, 256), (1, 44)], [(1, 256), (1, 256), (1, 88)]
    assert seen == [(1, 24), (1, 1), *small, *middle, *large, *large, *middle, *small]
    assert [(point.n, len(point.seconds)) for point in found.points] == [(8, 2), (300, 2), (600, 2)]
    shape = cost_shape(model)
    assert shape is not None
    assert found.costs == tuple(chunked_cost(shape, chunk_ends(n)) for n in (8, 300, 600))
    assert (found.curve, found.fitted, found.absent) == (None, "too_few", ())
    assert found.crossover_tokens == 576 and found.reference_crossover_tokens == 53_248


def test_lengths_beyond_the_context_or_memory_are_named(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    monkeypatch.setattr(trial.Trial, "has_room", lambda _, tokens, rows=1: tokens < 64)
    found = last(prefill_curve(model, lengths=(8, 64, 1024, 1025), repeats=1))
    assert [point.n for point in found.points] == [8]
    assert found.absent == (Absent(64, "memory"), Absent(1024, "memory"), Absent(1025, "context"))


def test_a_used_up_time_leaves_lengths_out_and_says_so(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token takes a second, and there are 100: 64 never fit, nor 16 again on the way back."""
    now = [0.0]
    monkeypatch.setattr("playground.engine.places.monotonic", lambda: now[0])
    monkeypatch.setattr(trial, "monotonic", lambda: now[0])
    original = trial._timed

    def timed(model: LoadedModel, ids: Any, cache: Any) -> Any:
        now[0] += len(ids[0])
        return original(model, ids, cache)

    monkeypatch.setattr(trial, "_timed", timed)
    *_, found = prefill_curve(make_model(), lengths=(8, 16, 32, 64), repeats=2, seconds_limit=25 + 100)
    assert [(point.n, len(point.seconds)) for point in found.points] == [(8, 2), (16, 1), (32, 2)]
    assert found.absent == (Absent(64, "time"),)


def test_a_step_curve_stands_at_its_contexts(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    seen = forwards(model, monkeypatch)
    found = last(step_curve(model, contexts=(10, 30), repeats=2))
    assert isinstance(found, StepCurve)
    steps = [(1, 1)] * 3
    assert seen == [(1, 24), (1, 1), (1, 8), *steps, (1, 20), *steps, *steps, *steps]
    assert [(point.n, len(point.seconds)) for point in found.points] == [(10, 6), (30, 6)]
    shape = cost_shape(model)
    assert shape is not None and found.costs == tuple(decode_cost(shape, n) for n in (10, 30))


def test_a_cache_that_cannot_be_cut_is_filled_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("mistral")  # windows of 16 that have moved on
    seen = forwards(model, monkeypatch)
    last(step_curve(model, contexts=(10, 40), repeats=2))
    assert seen.count((1, 8)) == 2 and (1, 38) not in seen


def test_lanes_share_one_forward(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    seen = forwards(model, monkeypatch)
    found = last(lane_curve(model, lanes=(1, 4), context_tokens=32, repeats=1))
    assert isinstance(found, LaneCurve) and found.context_tokens == 32
    assert seen == [(1, 24), (1, 1), (1, 30), *[(1, 1)] * 3, *[(4, 1)] * 3]
    one, four = found.costs
    assert four.flops == 4 * one.flops and four.weight_bytes == one.weight_bytes


def test_one_by_one_reads_the_same_and_answers_the_same(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    seen = forwards(model, monkeypatch)
    found = last(one_by_one(model, tokens=12, repeats=2))
    assert isinstance(found, OneByOne)
    single = [(1, 1)] * 12
    assert seen == [(1, 24), (1, 1), (1, 12), *single, *single, (1, 12)]
    assert found.same_choice and 0 <= found.max_logit_difference < 1e-3
    assert (found.prefill_weight_reads, found.one_by_one_weight_reads) == (1, 12)
    assert (len(found.prefill_seconds), len(found.one_by_one_seconds)) == (2, 2)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in WITH_STATE])
def test_old_keys_and_values_do_not_change(family: str) -> None:
    """fp32: equal up to sums taken in another order, also where windows have moved on."""
    found = last(kv_recheck(tiny(family), prompt_tokens=30, new_tokens=10))
    assert isinstance(found, KvRecheck)
    assert found.positions == 40 and found.layers == len(found.differences) > 0
    assert found.largest_difference < 1e-4 * found.largest_value
    assert found.sentence in ("recheck_equal", "recheck_rounding")


def test_a_cache_that_changed_is_told(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison sees one number of one layer: a value that is off by a half."""
    original = experiments.keys_and_values
    calls: list[int] = []

    def changed(cache: Any) -> Any:
        calls.append(1)
        found = original(cache)
        if len(calls) == 1:
            found[1][1][0, 0, 3, 5] += 0.5
        return found

    monkeypatch.setattr(experiments, "keys_and_values", changed)
    found = last(kv_recheck(make_model(), prompt_tokens=20, new_tokens=4))
    assert found.sentence == "recheck_other"
    assert found.differences[1] == pytest.approx(0.5, abs=1e-3) and found.differences[0] < 1e-3


def test_a_roofline_has_both_phases_under_one_roof(make_model: Callable[..., LoadedModel]) -> None:
    found = last(roofline(make_model(), prompt_tokens=300, lanes=(1, 8), repeats=1))
    assert isinstance(found, Roofline) and found.device == Device(1e9, 1e10)
    assert [(p.name, p.tokens, p.lanes) for p in found.points] == [
        ("prefill", 300, 1), ("decode", 302, 1), ("decode", 302, 8),
    ]  # fmt: skip
    prefill, single, eight = found.points
    assert prefill.intensity > eight.intensity > single.intensity
    for point in found.points:
        assert point.flops_per_second == pytest.approx(point.cost.flops / point.seconds)
        assert point.attainable_flops_per_second == min(1e10, 1e9 * point.intensity)


def test_a_model_without_arithmetic_has_curves_and_no_roofline(
    make_model: Callable[..., LoadedModel],
) -> None:
    model = make_model()
    model.spec = None
    found = last(prefill_curve(model, lengths=(4, 8), repeats=1))
    assert (found.costs, found.crossover_tokens) == ((), None) and len(found.points) == 2
    with pytest.raises(CannotMeasure, match="cannot be counted"):
        list(roofline(model))


def test_a_peak_names_its_parts(make_model: Callable[..., LoadedModel]) -> None:
    model = make_model()
    found = last(peak_memory(model, tokens=400))
    assert isinstance(found, PeakMemory)
    parts = {part.name: part for part in found.parts}
    assert parts["weights"].bytes == sum(p.nbytes for p in model.module.parameters())
    assert (parts["kv"].bytes, parts["kv"].origin) == (400 * model.facts.kv_bytes_per_token, "measured")  # type: ignore[operator]
    assert parts["logits"].bytes == model.facts.vocabulary * 4
    assert found.logits_of_all_bytes == 400 * model.facts.vocabulary * 4
    assert sum(part.bytes or 0 for part in found.parts) == found.total_bytes
    assert parts["rest"].origin == found.total_origin
    for name in ("weights", "kv"):
        assert parts[name].predicted_bytes == parts[name].bytes, "computed from the config alone"


def test_a_peak_is_measured_with_the_logits_of_every_position_too(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every position of a prefill in chunks is asked for, and only where there is room for it."""
    asked: list[int] = []
    original = peaking.forward_all

    def forward_all(module: Any, ids: Any, cache: Any, keep: int) -> Any:
        asked.append(keep)
        return original(module, ids, cache, keep)

    monkeypatch.setattr(peaking, "forward_all", forward_all)
    model = make_model()
    found = last(peak_memory(model, tokens=300))
    assert asked == [256, 44]
    assert found.all_logits_bytes is None or found.all_logits_bytes >= parts_of(found)["weights"]
    monkeypatch.setattr(peaking, "free_bytes", lambda _: 0)
    assert last(peak_memory(model, tokens=300)).all_logits_bytes is None and len(asked) == 2


def parts_of(found: PeakMemory) -> dict[str, int]:
    return {part.name: part.bytes or 0 for part in found.parts}


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("prefill", {"lengths": (0,)}), ("prefill", {"lengths": ()}), ("prefill", {"lengths": (8, 1.5)}),
    ("prefill", {"lengths": "32"}), ("prefill", {"lengths": 32}), ("prefill", {"repeats": 0}),
    ("prefill", {"seconds_limit": 0}), ("prefill", {"seconds_limit": float("nan")}),
    ("prefill", {"seconds_limit": "9"}), ("steps", {"contexts": (-1,)}), ("steps", {"contexts": (True,)}),
    ("steps", {"repeats": 1.5}), ("lanes", {"lanes": (None,)}), ("lanes", {"context_tokens": 0}),
    ("lanes", {"lanes": tuple(range(1, 99))}), ("one-by-one", {"tokens": 0}), ("one-by-one", {"repeats": None}),
    ("roofline", {"prompt_tokens": "9"}), ("roofline", {"lanes": (0,)}), ("recheck", {"new_tokens": -1}),
    ("recheck", {"prompt_tokens": 2.0}), ("peak", {"tokens": 10**10}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "wrong"), WRONG)
def test_counts_that_are_none_are_one_sentence_and_nothing_runs(
    name: str, wrong: dict[str, Any], make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    seen = forwards(model, monkeypatch)
    with pytest.raises(InvalidSetting, match=next(iter(wrong))) as refused:
        list(EXPERIMENTS[name](model, **wrong))
    assert str(refused.value).endswith(".") and seen == []


@pytest.mark.parametrize("name", ["prefill", "steps", "lanes"])
def test_a_stopped_curve_shows_what_it_has(name: str, make_model: Callable[..., LoadedModel]) -> None:
    control = Control()
    items = EXPERIMENTS[name](make_model(), control=control, **SMALL[name])
    assert isinstance(next(items), Progressed)
    control.stop()
    (found,) = items
    assert len(found.points) == 1  # type: ignore[union-attr]
    assert {absent.reason for absent in found.absent} == {"stopped"}  # type: ignore[union-attr]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_stopped_at_once_ends_without_a_value(
    name: str, make_model: Callable[..., LoadedModel]
) -> None:
    control = Control()
    control.stop()
    assert list(EXPERIMENTS[name](make_model(), control=control, **SMALL[name])) == []


@pytest.mark.parametrize("name", ["one-by-one", "roofline", "recheck"])
def test_half_a_comparison_is_none(name: str, make_model: Callable[..., LoadedModel]) -> None:
    control = Control()
    items = EXPERIMENTS[name](make_model(), control=control, **SMALL[name])
    next(items)
    control.stop()
    assert list(items) == []


@pytest.mark.parametrize(
    ("error", "sentence"), [(MemoryError(), "not enough memory"), (ValueError("broken"), "broken")]
)
def test_a_failure_is_one_sentence(
    error: Exception, sentence: str, make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forward(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(LoadedModel, "forward", forward)
    with pytest.raises(CannotMeasure, match=sentence) as refused:
        list(prefill_curve(make_model()))
    assert str(refused.value).endswith("nothing was changed.")


def test_rounds_go_forwards_and_backwards() -> None:
    assert [n for _, n in rounds((5, 6, 7), 3)] == [5, 6, 7, 7, 6, 5, 5, 6, 7]


def test_the_backend_offers_them(make_model: Callable[..., LoadedModel]) -> None:
    backend = LocalBackend(make_model())
    assert isinstance(backend, Measurer)
    assert isinstance(last(backend.experiment("steps", Control(), **SMALL["steps"])), StepCurve)
    assert backend.cost_shape() == cost_shape(backend.model)
    assert backend.cache_spec() == backend.model.spec
    assert backend.free_bytes() > 0
    with pytest.raises(BackendError, match=r"no experiment 'fast'; choose one of prefill, "):
        backend.experiment("fast", Control())
