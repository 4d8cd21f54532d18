"""Costs against a tiny case written out by hand, and against counting every pair one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.core.cost import (
    Attention,
    Cost,
    Device,
    Shape,
    attainable_flops_per_second,
    chunked_cost,
    crossover_tokens,
    decode_cost,
    prefill_cost,
    ridge_intensity,
    verdict,
)
from playground.core.kv import cache_spec

TINY = cache_spec(
    {"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4}, "float32"
)
"""Two layers, a key and a value of four numbers in fp32: 64 bytes a token."""
SHAPE = Shape(100, 20, 4.0, (Attention(32), Attention(32)), TINY)
"""Two query heads of width four: 2 x 4 for the score and 2 x 4 for the value, in each head: 32 a pair."""

LLAMA_LAYER = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
LLAMA_CONFIG = {
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096,
}  # fmt: skip
LLAMA_8B = Shape(
    32 * LLAMA_LAYER, 128_256 * 4096, 2.0, (Attention(4 * 128 * 32),) * 32, cache_spec(LLAMA_CONFIG)
)


def test_a_prefill_written_out() -> None:
    """Three positions meet 1 + 2 + 3 keys in each of two layers; the head makes one row of logits."""
    assert prefill_cost(SHAPE, 3) == Cost(2 * 100 * 3 + 2 * 20 + 2 * 32 * 6, 120 * 4, 0)


def test_a_prefill_behind_a_cache_written_out() -> None:
    """Two positions behind three meet 4 and 5 keys, and three cached ones are read."""
    assert prefill_cost(SHAPE, 2, 3) == Cost(2 * 100 * 2 + 2 * 20 + 2 * 32 * 9, 480, 3 * 64)


def test_a_decode_step_written_out() -> None:
    """Three lanes that look back at five positions: weights once, everything else three times."""
    cost = decode_cost(SHAPE, 5, 3)
    assert cost == Cost(3 * (2 * 120 + 2 * 32 * 5), 480, 3 * 5 * 64)
    assert cost.bytes == 480 + 960
    assert cost.intensity == cost.flops / 1440


def test_chunks_read_the_weights_anew_and_compute_the_same_pairs() -> None:
    whole, parts = prefill_cost(SHAPE, 10), chunked_cost(SHAPE, [4, 8, 10])
    assert parts.weight_bytes == 3 * whole.weight_bytes
    assert parts.flops == whole.flops + 2 * 2 * SHAPE.head_parameters  # two more rows of logits
    assert parts.cache_bytes == (4 + 8) * 64
    assert chunked_cost(SHAPE, [10], 6) == prefill_cost(SHAPE, 4, 6)


def met(position: int, window: int | None, chunked: bool) -> int:
    """Keys that the query at `position` (from 0) may meet, by looking at each."""
    if window is None:
        return position + 1
    first = position // window * window if chunked else position - window + 1
    return sum(1 for key in range(position + 1) if key >= first)


@given(
    tokens=st.integers(1, 40), reused=st.integers(0, 40), window=st.none() | st.integers(1, 30),
    chunked=st.booleans(),
)  # fmt: skip
def test_pairs_are_those_counted_one_by_one(
    tokens: int, reused: int, window: int | None, chunked: bool
) -> None:
    layer = Attention(1, window, chunked)
    expected = sum(met(position, window, chunked) for position in range(reused, reused + tokens))
    assert layer.flops(tokens, reused) == expected


@given(context=st.integers(1, 60), window=st.none() | st.integers(1, 30))
def test_a_text_read_one_by_one_meets_the_pairs_of_one_prefill(context: int, window: int | None) -> None:
    layer = Attention(7, window)
    assert sum(layer.flops(1, n) for n in range(context)) == layer.flops(context)


def test_a_latent_is_expanded_anew_for_every_cached_position() -> None:
    layer = Attention(10, flops_per_cached=1000)
    assert layer.flops(1, 5) == 10 * 6 + 5000
    assert layer.flops(6) == 10 * 21


def test_experts_are_read_once_however_many_tokens_choose_them() -> None:
    """Four of which one acts: one token leaves 3/4 out, two leave (3/4)^2, many leave none."""
    shape = Shape(100, 0, 1.0, (), TINY, idle_parameters=300, expert_share=0.25)
    assert [shape.weight_bytes(n) for n in (1, 2, 3)] == [100, 175, 231]
    assert shape.weight_bytes(1000) == 400
    assert decode_cost(shape, 1, 2).flops == 2 * 2 * 100  # both tokens go through one expert's worth


def test_llama_8b_crosses_over_where_a_count_finds_it() -> None:
    """The article's model: attention takes as much as everything else at 53,248 tokens."""

    def leads(n: int) -> bool:
        attention = 32 * 4 * 128 * 32 * (n * (n + 1) // 2)
        return attention >= 2 * 32 * LLAMA_LAYER * n + 2 * 128_256 * 4096

    found = crossover_tokens(LLAMA_8B)
    assert found == 53_248
    assert leads(found) and not leads(found - 1)


@given(
    body=st.integers(1, 3000), head=st.integers(0, 3000),
    windows=st.lists(st.none() | st.integers(1, 20), min_size=1, max_size=4),
)  # fmt: skip
def test_the_crossover_is_the_first_length_at_which_attention_leads(
    body: int, head: int, windows: list[int | None]
) -> None:
    shape = Shape(body, head, 4.0, tuple(Attention(32, window) for window in windows), TINY)
    lengths = range(1, 1000)
    pairs = (sum(sum(met(i, window, False) for i in range(n)) for window in windows) for n in lengths[:60])
    first = next((n for n, p in zip(lengths, pairs, strict=False) if 32 * p >= 2 * (body * n + head)), None)
    found = crossover_tokens(shape)
    if first is not None:
        assert found == first
    elif found is not None:
        assert found > 60
    else:
        assert None not in windows


def test_a_window_can_keep_attention_behind_for_ever() -> None:
    assert crossover_tokens(Shape(100, 20, 4.0, (Attention(32, 4),), TINY)) is None
    assert crossover_tokens(Shape(100, 20, 4.0, (), TINY)) is None


DEVICE = Device(bytes_per_second=100.0, flops_per_second=1000.0)


def test_the_roof_is_bandwidth_up_to_the_ridge_and_flat_beyond() -> None:
    assert ridge_intensity(DEVICE) == 10
    assert [attainable_flops_per_second(DEVICE, i) for i in (1, 10, 50)] == [100, 1000, 1000]


@pytest.mark.parametrize(
    ("cost", "seconds", "limit", "floor"),
    [
        (Cost(1000, 200, 0), 2.5, "bandwidth", 2.0),
        (Cost(3000, 100, 100), 4.0, "compute", 3.0),
        (Cost(1000, 200, 0), 40.0, "overhead", 2.0),
    ],
)
def test_a_verdict_names_what_was_waited_for(cost: Cost, seconds: float, limit: str, floor: float) -> None:
    found = verdict(cost, seconds, DEVICE)
    assert (found.limit, found.floor_seconds, found.share) == (limit, floor, floor / seconds)
    assert found.bandwidth_share == pytest.approx(cost.bytes / 100 / seconds)
    assert found.compute_share == pytest.approx(cost.flops / 1000 / seconds)
