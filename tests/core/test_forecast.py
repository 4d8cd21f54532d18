"""Forecasts against stepping one token at a time."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.core.events import Started
from playground.core.forecast import forecast, tokens_that_fit
from playground.core.kv import CacheSpec, LayerSpec
from playground.core.run import Run, fold

FULL = CacheSpec((LayerSpec("full", 1, 8),), 1, "float32")
"""64 bytes a token."""


def test_the_context_comes_first(run_of: Callable[..., Run]) -> None:
    """Prompt of four and eleven tokens, of which the cache holds fourteen; a token every 0.1 s."""
    found = forecast(run_of(list(range(11))), FULL, free_bytes=2**30)
    assert (found.tokens_now, found.lanes, found.context_tokens) == (14, 1, 8192)
    assert found.tokens_until_context == 8192 - 15
    assert found.tokens_until_memory == 2**30 // 64
    assert found.seconds_until_context == pytest.approx(817.7)
    assert (found.bytes_next_token, found.limit) == (64, "context")


def test_memory_comes_first_and_lanes_share_it(run_of: Callable[..., Run]) -> None:
    found = forecast(run_of([1, 2, 3], [1, 2, 3], [1]), FULL, free_bytes=1000)
    assert (found.lanes, found.bytes_next_token, found.tokens_until_memory) == (2, 128, 7)
    assert found.seconds_until_memory == pytest.approx(0.7)
    assert found.limit == "memory"


def test_what_is_unknown_is_none(run_of: Callable[..., Run]) -> None:
    run = run_of([1])
    events = [
        replace(e, model=replace(e.model, context=None)) if isinstance(e, Started) else e for e in run.events
    ]
    found = forecast(fold(events), None, None)
    assert (found.tokens_until_context, found.tokens_until_memory, found.limit) == (None, None, None)
    assert forecast(run, None, None).seconds_until_context is None  # no decode step yet, so no pace
    assert forecast(Run(), FULL, 100).tokens_now == 0


def test_windows_that_stopped_growing_never_fill_memory() -> None:
    windowed = replace(FULL, layers=(LayerSpec("sliding", 1, 8, 16),))
    assert tokens_that_fit(windowed, 16, 1, 0) is None
    assert tokens_that_fit(windowed, 10, 1, 6 * 64) is None
    assert tokens_that_fit(windowed, 10, 1, 6 * 64 - 1) == 5


@given(held=st.integers(0, 40), lanes=st.integers(1, 3), free=st.integers(0, 5000), window=st.integers(1, 30))
def test_it_is_the_last_token_that_fits(held: int, lanes: int, free: int, window: int) -> None:
    spec = replace(FULL, layers=(*FULL.layers, LayerSpec("sliding", 1, 8, window)))
    fits = 0
    while spec.used_bytes(held + fits + 1, lanes) - spec.used_bytes(held, lanes) <= free:
        fits += 1
    assert tokens_that_fit(spec, held, lanes, free) == fits
