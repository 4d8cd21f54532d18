"""The growing layer: what `DynamicLayer` holds, with room behind it that no one else can write into."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.cache_utils import DynamicLayer

from playground.engine.cache import ROOM_TOKENS, GrowingLayer, fork, forward, measure, new_cache
from tests.engine.families import tiny

Operation = tuple[str, int]
OPERATIONS = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 300)),
    st.tuples(st.just("crop"), st.integers(0, 400)),
    st.tuples(st.just("rows"), st.integers(1, 3)),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(OPERATIONS, min_size=1, max_size=12))
def test_it_holds_what_the_usual_layer_holds(operations: list[Operation]) -> None:
    ours, usual, rows, made = GrowingLayer(), DynamicLayer(), 1, 0
    for name, n in operations:
        if name == "append":
            made += 1
            key = torch.full((rows, 2, n, 4), float(made)) + torch.arange(n)[:, None]
            found, expected = ours.update(key, -key), usual.update(key, -key)
            assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
        elif usual.get_seq_length():
            if name == "crop":
                surplus = min(n, usual.get_seq_length() - 1)
                ours.crop(-surplus)
                usual.crop(-surplus)
            else:
                index = torch.arange(n) % rows
                ours.reorder_cache(index)
                usual.reorder_cache(index)
                rows = n
            assert torch.equal(ours.keys, usual.keys) and torch.equal(ours.values, usual.values)
    assert ours.get_seq_length() == usual.get_seq_length()


@torch.inference_mode()
def test_a_step_writes_in_place_and_room_is_reserved_in_whole_blocks() -> None:
    model = tiny("llama")
    cache = new_cache(model.module)
    model.forward(torch.tensor([[5, 6, 7]]), cache)
    before = cache.layers[0].keys.data_ptr()
    model.forward(torch.tensor([[8]]), cache)
    assert cache.layers[0].keys.data_ptr() == before
    assert model.spec is not None
    measured = measure(cache)
    assert measured.used_bytes == model.spec.used_bytes(4)
    assert measured.allocated_bytes == model.spec.used_bytes(ROOM_TOKENS)


@torch.inference_mode()
def test_a_fork_and_its_origin_go_on_apart() -> None:
    model = tiny("llama")
    origin = new_cache(model.module)
    forward(model.module, torch.tensor([[5, 6, 7, 8]]), origin)
    twin = fork(origin, 2, [0])
    assert twin is not None
    for cache, ids in ((origin, [5, 6, 7, 8]), (twin, [5, 6])):
        alone = new_cache(model.module)
        forward(model.module, torch.tensor([ids]), alone)
        found = forward(model.module, torch.tensor([[9, 10]]), cache)
        assert torch.allclose(found, forward(model.module, torch.tensor([[9, 10]]), alone), atol=1e-5)


@torch.inference_mode()
def test_what_was_cropped_is_written_over() -> None:
    model = tiny("llama")
    cache, alone = new_cache(model.module), new_cache(model.module)
    forward(model.module, torch.tensor([[5, 6, 7, 8]]), cache)
    cache.crop(-2)
    forward(model.module, torch.tensor([[5, 6]]), alone)
    expected = forward(model.module, torch.tensor([[9]]), alone)
    assert torch.allclose(forward(model.module, torch.tensor([[9]]), cache), expected, atol=1e-5)
    assert torch.allclose(cache.layers[0].keys, alone.layers[0].keys, atol=1e-5)
