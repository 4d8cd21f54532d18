"""What fits into a memory, other kinds of attention, and what a run holds: arithmetic, by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from playground.core.events import LayerKv
from playground.core.fits import Plan, largest
from playground.core.ghosts import ghosts
from playground.core.holding import empty, holding, plain_spec
from playground.core.kv import CacheSpec, LayerSpec, cache_spec
from playground.core.peak import activation_bytes
from playground.core.request import Reason
from playground.core.run import Run
from tests.core.conftest import FACTS
from tests.core.test_sizing import LLAMA_8B

GIB = 2**30


def test_a_plan_adds_weights_cache_and_activations():
    plan = Plan(LLAMA_8B, cache_spec(LLAMA_8B), 16_060_522_496)
    need = plan.need(4096, 32)
    logits = 32 * 128_256 * 4
    assert need.cache_bytes == 16 * GIB
    assert need.activation_bytes == activation_bytes(2048, 4096, 14_336, 2) + logits
    assert need.total_bytes == 16_060_522_496 + 16 * GIB + need.activation_bytes


@pytest.mark.parametrize("memory_gb", [24, 40, 80])
def test_the_largest_batch_and_context_are_the_last_that_fit(memory_gb):
    plan, memory = Plan(LLAMA_8B, cache_spec(LLAMA_8B), 16_060_522_496), memory_gb * 10**9
    fit = plan.fit(memory, 4096, 4, (10**9, 10**6))
    for tokens, sequences in ((4096, fit.largest_sequences), (fit.largest_tokens, 4)):
        assert plan.need(tokens, sequences).total_bytes <= memory
    assert plan.need(4096, fit.largest_sequences + 1).total_bytes > memory
    assert plan.need(fit.largest_tokens + 1, 4).total_bytes > memory
    assert fit.fits


def test_nothing_fits_beside_weights_that_do_not():
    fit = Plan(LLAMA_8B, cache_spec(LLAMA_8B), 16_060_522_496).fit(16 * 10**9, 4096, 1, (10**9, 10**6))
    assert (fit.fits, fit.largest_sequences, fit.largest_tokens) == (False, 0, 0)


def test_without_weights_nothing_is_said_to_fit():
    fit = Plan(LLAMA_8B, cache_spec(LLAMA_8B), None).fit(10**12, 4096, 1, (10**9, 10**6))
    assert (fit.fits, fit.largest_sequences, fit.largest_tokens) == (None, None, None)


def test_a_cache_that_never_fills_has_no_largest_context():
    mamba = CacheSpec((LayerSpec("none"),) * 4, None, "bfloat16")
    assert Plan({}, mamba, 10**9).fit(2 * 10**9, 10, 1, (10**9, 10**6)).largest_tokens is None


def test_largest():
    for most in (0, 1, 57, 99):
        assert largest(most.__ge__, 100) == most
    assert largest(lambda n: True, 100) is None
    assert largest(lambda n: False, 100) == 0


def test_ghosts_of_a_grouped_model():
    """Case 34: heads are not KV heads."""
    found = {ghost.name: ghost for ghost in ghosts(cache_spec(LLAMA_8B), 4096, 32)}
    assert [name for name, ghost in found.items() if ghost.real] == ["gqa"]
    assert {name: ghost.used_bytes for name, ghost in found.items()} == {
        "mha": 64 * GIB, "gqa": 16 * GIB, "mqa": 2 * GIB,
        "mla": 32 * 576 * 2 * 4096 * 32,  # 4.5 widths of a head, in 16 bits
        "windowed": (5 * 4096 + 27 * 1024) * 4096 * 32,
    }  # fmt: skip


def test_ghosts_know_the_real_kind():
    def real(config: dict[str, Any]) -> list[tuple[str, int | None]]:
        return [(g.name, g.kv_heads) for g in ghosts(cache_spec(config), 1000) if g.real]

    base = {"num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 64}
    assert real(base) == [("mha", 8)]
    assert real(base | {"num_key_value_heads": 1}) == [("mqa", 1)]
    assert real(base | {"num_key_value_heads": 2}) == [("gqa", 2)]
    windows = {"sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"]}
    assert real(base | windows) == [("windowed", 8)]
    assert real(base | {"kv_lora_rank": 32, "qk_rope_head_dim": 8}) == [("mla", None)]


def test_a_windowed_model_has_the_one_without_windows_beside_it():
    """Case 36: what an engine reserves that makes no use of windows."""
    config = {
        "num_hidden_layers": 2, "num_attention_heads": 8, "hidden_size": 64, "sliding_window": 128,
        "layer_types": ["sliding_attention", "full_attention"],
    }  # fmt: skip
    spec = cache_spec(config)
    full = next(ghost for ghost in ghosts(spec, 1000) if ghost.name == "full")
    assert full.used_bytes == spec.allocated_bytes(1000) > spec.used_bytes(1000)


def test_no_ghosts_where_nothing_attends():
    assert ghosts(CacheSpec((LayerSpec("none"),), None, "float32"), 10) == ()


def test_a_holding_is_of_all_lanes(run_of: Callable[..., Run]):
    found = holding(run_of([5, 6, 7], [5, 6]))
    assert found is not None
    assert (found.lanes, found.tokens, found.prompt_tokens) == (2, 6 + 5, 4)
    assert found.used_bytes == found.predicted_bytes == found.allocated_bytes == 46_080 * 11
    assert (found.equal, found.reasons) == (True, ())


def test_a_holding_says_why_it_differs(run_of: Callable[..., Run], step_of: Callable[..., Any]):
    run = run_of([5])
    reasons = (Reason("kv_window", "One fewer."),)
    run.started = replace(run.started, model=replace(FACTS, kv_reasons=reasons))  # type: ignore[type-var]
    run.lanes[0].steps[0] = step_of(0, 0, 5, 2.0, kv_used_bytes=46_080 * 3)
    found = holding(run)
    assert found is not None
    assert (found.equal, found.reasons) == (False, reasons)


def test_a_holding_by_kind_of_layer(run_of: Callable[..., Run]):
    """Cases 36 and 38: windows stop growing, and a constant state stands apart."""
    spec = CacheSpec(
        (LayerSpec("sliding", 2, 8, 3), LayerSpec("full", 2, 8), LayerSpec("full", 2, 8)), 4, "float32"
    )
    found = holding(run_of([5, 6]), spec)
    assert found is not None
    assert [(kind.kind, kind.count, kind.predicted_bytes, kind.used_bytes) for kind in found.kinds] == [
        ("sliding", 1, 128 * 3, None), ("full", 2, 2 * 128 * 5, None),
    ]  # fmt: skip


def test_measured_layers_stand_beside_the_predicted_ones(run_of: Callable[..., Run]):
    """Cases 36 and 38: each kind apart; a window that keeps one position fewer is told, and where it is."""
    spec = CacheSpec(
        (LayerSpec("sliding", 2, 8, 3), LayerSpec("full", 2, 8), LayerSpec("full", 2, 8), LayerSpec("none")), 4,
        "float32",
    )  # fmt: skip
    run = run_of([5, 6], [5, 6])
    read = (LayerKv(128 * 2, 128 * 3), LayerKv(128 * 5, 128 * 256), LayerKv(128 * 5, 128 * 256))
    for lane in run.lanes:
        assert lane.finished is not None
        lane.finished = replace(lane.finished, kv_layers=read)
    found = holding(run, spec)
    assert found is not None
    told = {kind.kind: (kind.predicted_bytes, kind.used_bytes, kind.allocated_bytes) for kind in found.kinds}
    assert told == {
        "sliding": (2 * 128 * 3, 2 * 128 * 2, 2 * 128 * 3),
        "full": (4 * 128 * 5, 4 * 128 * 5, 4 * 128 * 256),
        "none": (0, 0, 0),
    }
    assert [kind.equal for kind in found.kinds] == [False, True, True]
    assert [layer.used_bytes for layer in found.layers] == [2 * 128 * 2, 2 * 128 * 5, 2 * 128 * 5, 0]
    run.lanes[1].finished = replace(run.lanes[1].finished, kv_layers=read[:2])  # type: ignore[type-var]
    found = holding(run, spec)
    assert found is not None and {layer.used_bytes for layer in found.layers} == {None}, (
        "not all lanes were read"
    )


def test_the_shape_from_a_record_alone():
    facts = replace(FACTS, kv_formula=(30, 3, 64, 4), kv_context_bytes=46_080 * 8192, kv_state_bytes=0)
    spec = plain_spec(facts)
    assert spec is not None
    assert spec.bytes_per_token == 46_080
    assert plain_spec(replace(facts, kv_context_bytes=46_080 * 100)) is None, "it has windows"
    assert plain_spec(FACTS) is None


def test_a_model_before_any_run_holds_nothing():
    found = empty(FACTS, None)
    assert (found.lanes, found.tokens, found.used_bytes, found.equal) == (0, 0, 0, True)
