"""The store of ended runs' caches: bounded in bytes, found by run, cropped to what is shared."""

from dataclasses import replace

from playground.core.decoding import GREEDY
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.engine.decode import stream
from playground.engine.model import LoadedModel
from playground.engine.store import CacheStore

BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 4  # layers, key and value, KV heads, head dimension, bytes of fp32


def ended(model: LoadedModel, run: str, tokens: int = 10) -> Run:
    """A run whose cache holds exactly `tokens` positions when it is handed over."""
    request = Request(
        prompt_ids=tuple(range(5, 5 + tokens)), lanes=(replace(GREEDY, max_new_tokens=1),), run=run
    )
    return fold(stream(model, request))


def test_the_oldest_cache_makes_room(model: LoadedModel) -> None:
    model.caches = CacheStore(limit_bytes=25 * BYTES_PER_TOKEN)
    runs = [ended(model, name) for name in ("a", "b", "c")]
    assert model.caches.held_bytes == 20 * BYTES_PER_TOKEN
    ids = tuple(runs[0].prompt_ids)
    assert model.caches.take("a", ids) is None
    found = model.caches.take("c", ids)
    assert found is not None and found[1] == 9  # the last one is left to compute
    assert model.caches.held_bytes == 10 * BYTES_PER_TOKEN


def test_a_cache_larger_than_the_store_is_not_kept(model: LoadedModel) -> None:
    model.caches = CacheStore(limit_bytes=9 * BYTES_PER_TOKEN)
    ended(model, "large")
    assert model.caches.held_bytes == 0


def test_a_cache_that_shares_nothing_is_not_used(model: LoadedModel) -> None:
    model.caches = CacheStore()
    ended(model, "a")
    assert model.caches.take("a", (200, 201, 202)) is None
