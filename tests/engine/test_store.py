"""The store of ended runs' caches: bounded in bytes, found by run, cropped to what is shared, never written to."""

import inspect
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers.cache_utils import DynamicLayer

from playground.core.branch import continued
from playground.core.decoding import GREEDY
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.engine import cache as adapter
from playground.engine.decode import stream
from playground.engine.model import LoadedModel
from playground.engine.store import CacheStore
from tests.engine.families import FAMILIES, WINDOW, WITH_STATE, module

BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 4  # layers, key and value, KV heads, head dimension, bytes of fp32


@pytest.fixture
def model(make_model: Any) -> LoadedModel:
    fresh: LoadedModel = make_model()
    return fresh


def ended(model: LoadedModel, run: str, tokens: int = 10, lanes: tuple[int, ...] = (1,)) -> Run:
    """A run whose lanes choose so many tokens; with one, its cache holds exactly `tokens` positions."""
    decodings = tuple(replace(GREEDY, max_new_tokens=count) for count in lanes)
    return fold(stream(model, Request(prompt_ids=tuple(range(5, 5 + tokens)), lanes=decodings, run=run)))


def filled(name: str, tokens: int, rows: int = 1) -> Any:
    cache = adapter.new_cache(module(name))
    with torch.inference_mode():
        for row in range(tokens):
            adapter.forward(module(name), torch.tensor([[5 + row + 7 * i] for i in range(rows)]), cache)
    return cache


def contents(cache: Any) -> list[torch.Tensor]:
    return [t.clone() for t in adapter._tensors(cache.layers)]


def test_the_cache_used_longest_ago_makes_room(model: LoadedModel) -> None:
    probe = ended(model, "probe")
    size = model.caches.held_bytes
    assert size >= 10 * BYTES_PER_TOKEN
    model.caches = CacheStore(limit_bytes=size * 5 // 2)
    for name in ("a", "b"):
        ended(model, name)
    ids = tuple(probe.prompt_ids)
    assert model.caches.reuse("a", ids) is not None  # now used later than b
    ended(model, "c")
    assert model.caches.held_bytes == 2 * size
    assert model.caches.reuse("b", ids) is None
    found = model.caches.reuse("a", ids)
    assert found is not None and found.tokens == 9  # the last one is left to compute
    assert found.obstacle is None and found.again_tokens == 0


def test_a_cache_larger_than_the_store_is_not_kept(model: LoadedModel) -> None:
    model.caches = CacheStore(limit_bytes=9 * BYTES_PER_TOKEN)
    ended(model, "large")
    ended(model, "lanes", lanes=(1, 5))
    assert model.caches.held_bytes == 0


def test_a_cache_that_shares_nothing_is_not_used(model: LoadedModel) -> None:
    ended(model, "a")
    found = model.caches.reuse("a", (200, 201, 202))
    assert found is not None and (found.cache, found.tokens, found.obstacle) == (None, 0, None)


def test_every_lane_of_a_run_is_kept_also_those_that_ended_early(model: LoadedModel) -> None:
    run = ended(model, "lanes", lanes=(3, 8, 8, 5))
    model.stop_ids = frozenset()
    for lane in run.lanes:
        branch = fold(stream(model, continued(run, lane=lane.index)))
        assert branch.prefilled is not None
        assert branch.prefilled.tokens_reused == len(run.prompt_ids) + len(lane.steps) - 1
        assert branch.prefilled.tokens_computed == 1


def test_forgetting_a_run_frees_its_caches(model: LoadedModel) -> None:
    ended(model, "lanes", lanes=(2, 6))
    ended(model, "other")
    before = model.caches.held_bytes
    model.caches.forget("lanes")
    assert 0 < model.caches.held_bytes < before
    assert model.caches.reuse("lanes", tuple(range(5, 15))) is None


@pytest.mark.parametrize("name", FAMILIES)
def test_a_fork_is_a_copy_that_goes_on_alone(name: str) -> None:
    """Every kind: the rows picked are those asked for, and nothing that the fork does reaches the original."""
    cache = filled(name, 24, rows=3)
    before = contents(cache)
    with torch.inference_mode():
        fork = adapter.fork(cache, 24, [2, 0])
        assert fork is not None
        assert not adapter._storages(adapter._tensors(fork.layers)) & adapter._storages(
            adapter._tensors(cache.layers)
        )
        ahead = adapter.forward(module(name), torch.tensor([[9], [9]]), fork)
        assert all(torch.equal(a, b) for a, b in zip(before, contents(cache), strict=True))
        whole = adapter.forward(module(name), torch.tensor([[9]] * 3), cache)
    assert torch.allclose(ahead, whole[[2, 0]], atol=2e-5)


@pytest.mark.parametrize("name", FAMILIES)
def test_what_can_be_cropped_is_found_by_looking(name: str) -> None:
    """Windows can while they have not moved, states never; the classes' own promise is not asked."""
    can = name not in WITH_STATE
    short, long = filled(name, WINDOW - 1), filled(name, WINDOW + 4)
    windowed = any(getattr(layer, "is_sliding", False) for layer in short.layers)
    assert adapter.crop_obstacle(short) == (None if can else "state")
    assert adapter.crop_obstacle(long) == ("state" if not can else "window" if windowed else None)
    with torch.inference_mode():
        cut = adapter.fork(short, 9, [0])
        assert (cut is not None) == can
        if cut is None:
            return
        assert adapter.tokens_held(cut) == 9
        again = adapter.forward(module(name), torch.tensor([[14]]), cut)
        straight = adapter.forward(module(name), torch.tensor([[14]]), filled(name, 9))
    assert torch.allclose(again, straight, atol=2e-5)


class Odd(DynamicLayer):
    """Keeps something that cropping and copying know nothing of."""

    def __init__(self) -> None:
        super().__init__()
        self.elsewhere = torch.ones(1, 2, 6, 4)


def test_an_unknown_kind_of_layer_is_not_cropped_and_never_shared() -> None:
    cache = adapter.new_cache(module("llama"))
    cache.layers[1] = Odd()
    with torch.inference_mode():
        adapter.forward(module("llama"), torch.tensor([[5, 6, 7, 8, 9, 10]]), cache)
        assert adapter.crop_obstacle(cache) == "other"
        assert adapter.fork(cache, 4, [0]) is None
        assert adapter.fork(cache, 6, [0]) is None


def test_the_name_of_the_cache_argument_comes_from_the_signature() -> None:
    def newest(input_ids: Any, cache: Any, logits_to_keep: int) -> None: ...
    def older(input_ids: Any, past_key_values: Any) -> None: ...
    def state_space(input_ids: Any, cache_params: Any) -> None: ...

    found = [adapter._arguments(forward) for forward in (newest, older, state_space)]
    assert [takes.cache for takes in found] == ["cache", "past_key_values", "cache_params"]
    assert [takes.keeps for takes in found] == [True, False, False]
    for name in FAMILIES:
        argument = adapter._arguments(type(module(name)).forward).cache
        assert argument in inspect.signature(type(module(name)).forward).parameters
