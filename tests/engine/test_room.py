"""Memory is looked at before each forward, seldom, and running short ends a run in a sentence."""

from dataclasses import replace
from typing import Any

import pytest

from playground.core.decoding import GREEDY
from playground.core.events import Failed, Stepped
from playground.core.request import Request
from playground.core.run import fold
from playground.engine import devices, room
from playground.engine.decode import stream
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.room import Extent, NoRoom, Room
from playground.ui.sentences import translated

PER_TOKEN = 2 * 2 * 2 * 16 * 4  # layers, key and value, KV heads, head dimension, bytes of fp32
PROMPT = tuple(range(5, 15))


@pytest.fixture
def model(make_model: Any) -> LoadedModel:
    fresh: LoadedModel = make_model()
    fresh.stop_ids = frozenset()
    return fresh


class Free:
    """So many bytes are free; counts how often that is asked."""

    def __init__(self, free_bytes: int) -> None:
        self.free_bytes, self.asked = free_bytes, 0

    def __call__(self, device: Any) -> int:
        self.asked += 1
        return self.free_bytes


def logits_bytes(model: LoadedModel, rows: int = 1) -> int:
    return rows * model.facts.vocabulary * 4 * 4


def test_what_a_forward_needs_is_the_growth_and_the_logits(model: LoadedModel) -> None:
    exactly = Free(5 * PER_TOKEN)
    Room(model, exactly).require(Extent(10, 1), Extent(15, 1))
    exactly.free_bytes -= 1
    with pytest.raises(NoRoom, match=r"it needs about 2\.5 KiB of memory and 2\.5 KiB are free"):
        Room(model, exactly).require(Extent(10, 1), Extent(15, 1))
    exactly.free_bytes = 3 * 10 * PER_TOKEN + logits_bytes(model, 3)  # three rows more
    Room(model, exactly).require(Extent(10, 1), Extent(10, 4))


def test_the_system_is_asked_once_a_stretch(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    free = Free(2**30)
    monkeypatch.setattr(room, "free_bytes", free)
    run = fold(stream(model, Request(prompt_ids=PROMPT, lanes=(replace(GREEDY, max_new_tokens=300),))))
    assert len(run.lanes[0].steps) == 300
    assert 4 <= free.asked <= 8


def test_a_run_that_outgrows_memory_ends_in_a_sentence_and_keeps_what_it_has(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = Free(2**30)
    monkeypatch.setattr(room, "free_bytes", free)
    events = []
    for event in stream(model, Request(prompt_ids=PROMPT, lanes=(replace(GREEDY, max_new_tokens=300),) * 2)):
        events.append(event)
        if isinstance(event, Stepped) and event.step == 3:
            free.free_bytes = 100
    run, last = fold(events), events[-1]
    assert isinstance(last, Failed) and last.lane is None
    assert last.message.startswith("The next step could not be computed: it needs about 1 KiB of memory")
    assert last.message.endswith("and 100 B are free; every token up to here is kept.")
    assert run.done and 4 < len(run.lanes[0].steps) == len(run.lanes[1].steps) < 100


def test_ended_runs_caches_make_room_first(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    fold(stream(model, Request(prompt_ids=PROMPT, lanes=(replace(GREEDY, max_new_tokens=4),))))
    assert model.caches.held_bytes
    monkeypatch.setattr(room, "free_bytes", lambda _: 0 if model.caches.held_bytes else 2**30)
    again = fold(stream(model, Request(prompt_ids=PROMPT, lanes=(replace(GREEDY, max_new_tokens=4),))))
    assert again.lanes[0].finish_reason == "max_new_tokens"


def test_a_prompt_for_which_there_is_no_room_is_refused_with_the_numbers(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "free_bytes", Free(50_000))
    with pytest.raises(
        RequestError, match=r"needs about 6[\d.]+ KiB .* 48\.8 KiB are free; nothing"
    ) as refused:
        stream(model, Request(prompt_ids=PROMPT, lanes=(GREEDY,) * 6))
    said = translated(str(refused.value), "zh")
    assert "48.8 KiB" in said and "needs" not in said and "lanes" not in said


def test_a_cache_that_cannot_be_predicted_holds_nobody_back(model: LoadedModel) -> None:
    model.spec = None
    Room(model, Free(logits_bytes(model))).require(Extent(0, 0), Extent(10**9, 1))


def test_on_a_gpu_what_torch_holds_unused_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(devices, "memory", lambda device: devices.Memory(1000, 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 50)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 20)
    assert room.free_bytes(torch.device("cuda:0")) == 130
    assert room.free_bytes(torch.device("cpu")) == 100
