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
from playground.engine.race import race
from playground.engine.room import Extent, NoRoom, Room
from playground.engine.score import CannotScore, score
from playground.ui.sentences import translated

PER_TOKEN = 2 * 2 * 2 * 16 * 4  # layers, key and value, KV heads, head dimension, bytes of fp32
PASSING = (4 * 64 + 3 * 128) * 4  # a position of the widest layer: 4 of the stream, 3 of the feed-forward
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


def test_what_a_forward_needs_is_the_growth_the_logits_and_what_passes(model: LoadedModel) -> None:
    exactly = Free(5 * (PER_TOKEN + PASSING))
    Room(model, exactly).require(Extent(10, 1), Extent(15, 1))
    exactly.free_bytes -= 1
    with pytest.raises(NoRoom, match=r"it needs about 15 KiB of memory and 15 KiB are free"):
        Room(model, exactly).require(Extent(10, 1), Extent(15, 1))
    exactly.free_bytes = 3 * 10 * PER_TOKEN + logits_bytes(model, 3)  # three rows more
    Room(model, exactly).require(Extent(10, 1), Extent(10, 4))
    exactly.free_bytes = 4 * (PER_TOKEN + PASSING)  # a step of four rows
    Room(model, exactly).require(Extent(10, 4), Extent(11, 4))
    exactly.free_bytes = 1000 * PER_TOKEN + logits_bytes(model) + 256 * PASSING  # a prompt, in chunks
    Room(model, exactly).require(Extent(0, 0), Extent(1000, 1))


def test_without_a_cache_nothing_stays_and_the_whole_text_passes(model: LoadedModel) -> None:
    free = Free(1000 * PASSING)
    Room(model, free, cached=False).require(Extent(0, 1), Extent(1000, 1))
    free.free_bytes -= 1
    with pytest.raises(NoRoom):
        Room(model, free, cached=False).require(Extent(0, 1), Extent(1000, 1))


def test_scores_of_every_pair_count_where_attention_keeps_them(make_model: Any) -> None:
    eager = make_model(attn_implementation="eager")
    free = Free(
        5 * (PER_TOKEN + PASSING) + 5 * 15 * 4 * (2 * 4 + 4)
    )  # query heads; twice in fp32, and the softmax
    Room(eager, free).require(Extent(10, 1), Extent(15, 1))
    free.free_bytes -= 1
    with pytest.raises(NoRoom):
        Room(eager, free).require(Extent(10, 1), Extent(15, 1))


def test_the_system_is_asked_once_a_stretch(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    free = Free(2**30)
    monkeypatch.setattr(room, "free_bytes", free)
    run = fold(stream(model, Request(prompt_ids=PROMPT, lanes=(replace(GREEDY, max_new_tokens=300),))))
    assert len(run.lanes[0].steps) == 300
    assert 4 <= free.asked <= 8


@pytest.mark.parametrize(("cached", "needed"), [(True, "6 KiB"), (False, "")])
def test_a_run_that_outgrows_memory_ends_in_a_sentence_and_keeps_what_it_has(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch, cached: bool, needed: str
) -> None:
    free = Free(2**30)
    monkeypatch.setattr(room, "free_bytes", free)
    events, lanes = [], (replace(GREEDY, max_new_tokens=300),) * 2
    for event in stream(model, Request(prompt_ids=PROMPT, lanes=lanes, cached=cached)):
        events.append(event)
        if isinstance(event, Stepped) and event.step == 3:
            free.free_bytes = 100
    run, last = fold(events), events[-1]
    assert isinstance(last, Failed) and last.lane is None
    assert last.message.startswith(f"The next step could not be computed: it needs about {needed}")
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
        RequestError, match=r"needs about 8[\d.]+ KiB .* 48\.8 KiB are free; nothing"
    ) as refused:
        stream(model, Request(prompt_ids=PROMPT, lanes=(GREEDY,) * 6))
    said = translated(str(refused.value), "zh")
    assert "48.8 KiB" in said and "needs" not in said and "lanes" not in said


def test_a_race_is_refused_where_the_side_without_a_cache_has_no_room(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = tuple(5 + i % 300 for i in range(1000))
    request = Request(prompt_ids=ids, lanes=(replace(GREEDY, max_new_tokens=1),))
    monkeypatch.setattr(room, "free_bytes", Free(1000 * PASSING - 1))  # the side with one takes half of it
    with pytest.raises(RequestError, match=r"cannot begin: it needs about 2\.45 MiB"):
        race(model, request)
    assert fold(stream(model, request)).lanes[0].finish_reason == "max_new_tokens"


def test_a_text_is_not_scored_where_there_is_no_room(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "free_bytes", Free(1000))
    with pytest.raises(
        CannotScore, match=r"scored: it needs about .* KiB of memory and 1000 B are"
    ) as refused:
        score(model, "One day", " Lily met a cat")
    assert "1000 B" in translated(str(refused.value), "zh") and "needs" not in translated(
        str(refused.value), "zh"
    )


def test_what_cannot_be_predicted_holds_nobody_back(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.spec = None
    Room(model, Free(logits_bytes(model) + 256 * PASSING)).require(Extent(0, 0), Extent(10**9, 1))
    monkeypatch.setattr(room, "widths", lambda config: None)
    Room(model, Free(logits_bytes(model))).require(Extent(0, 0), Extent(10**9, 1))


def test_on_a_gpu_what_torch_holds_unused_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(devices, "memory", lambda device: devices.Memory(1000, 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 50)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 20)
    assert room.free_bytes(torch.device("cuda:0")) == 130
    assert room.free_bytes(torch.device("cpu")) == 100
