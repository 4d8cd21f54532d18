"""Races of tiny models of every kind: what is equal, what is counted, what is refused, what stops them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from playground import race
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.events import Stepped
from playground.core.race import Item, Race, Raced, Ticked, follow, race_report, work
from playground.core.request import Request
from playground.core.trace import dumps_trace, loads_trace
from playground.engine import race as racing
from playground.engine.cache import forward, new_cache
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from tests.engine.conftest import loaded
from tests.engine.families import FAMILIES, tiny
from tests.engine.reference import greedy_ids

NEAR_TIE = 1e-4


def asked(tokens: int, prompt: str = "the quick brown fox") -> Request:
    return Request(prompt, (replace(GREEDY, max_new_tokens=tokens),), chat=False)


def held(items: Iterator[Item]) -> Race:
    found = Race()
    for item in items:
        follow(found, item)
    return found


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "bamba"])
def test_both_sides_choose_the_same_in_fp32(family: str) -> None:
    found = held(race(tiny(family), asked(40)))
    assert found.raced is not None
    step = found.raced.first_divergence
    if step is not None:  # only where two candidates are as good as equal
        best, second, *_ = found.cached.lanes[0].steps[step].candidates
        assert best.raw_logprob - second.raw_logprob < NEAR_TIE
    else:
        assert found.cached.lanes[0].token_ids == found.uncached.lanes[0].token_ids
        assert found.raced.tokens_equal and found.raced.compared_steps == 40
    assert found.raced.max_logit_difference is not None and found.raced.max_logit_difference < 2e-3


def test_both_sides_choose_what_generate_chooses(model: LoadedModel) -> None:
    found = held(race(model, asked(24)))
    for run in (found.cached, found.uncached):
        assert run.lanes[0].token_ids == greedy_ids(model.module, run.prompt_ids, 24)


def test_sixteen_bit_reports_where_it_parts(make_model: Callable[..., LoadedModel]) -> None:
    """Case 33: 60 greedy tokens in bf16, the cache on and off; equality is only ticked, token by token."""
    single = make_model()
    single.stop_ids = frozenset()
    half = loaded(make_model().module.to(torch.bfloat16), single.tokenizer)
    half.stop_ids = frozenset()
    exact, rough = held(race(single, asked(60))), held(race(half, asked(60)))
    assert exact.cached.lanes[0].token_ids == exact.uncached.lanes[0].token_ids
    assert [tick.equal for tick in exact.ticks] == [True] * 60
    assert exact.raced is not None and rough.raced is not None
    assert exact.raced.max_logit_difference is not None and rough.raced.max_logit_difference is not None
    assert rough.raced.max_logit_difference > 10 * exact.raced.max_logit_difference
    pairs = zip(rough.cached.lanes[0].token_ids, rough.uncached.lanes[0].token_ids, strict=True)
    same = [one == other for one, other in pairs]
    parted = same.index(False) if False in same else None
    assert rough.raced.first_divergence == parted
    compared = 60 if parted is None else parted + 1
    assert [tick.equal for tick in rough.ticks] == same[:compared] + [None] * (60 - compared)
    assert [tick.logit_difference is None for tick in rough.ticks] == [False] * compared + [True] * (
        60 - compared
    )
    assert "sixteen_bit" in [note.key for note in rough.cached.started.notes]  # type: ignore[union-attr]


def test_the_largest_difference_is_over_the_whole_vocabulary(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One candidate that is never chosen is moved on the side without a cache."""
    original = model.module.forward

    def forward(**inputs: Any) -> Any:
        output = original(**inputs)
        if not inputs["use_cache"]:
            lowest = output.logits.argmin(-1, keepdim=True)
            output.logits.scatter_(-1, lowest, output.logits.gather(-1, lowest) - 0.25)
        return output

    monkeypatch.setattr(racing, "_OTHER_MODEL", {"float32": 1.0})
    monkeypatch.setattr(model.module, "forward", forward)
    found = held(race(model, asked(4)))
    assert [tick.logit_difference for tick in found.ticks] == pytest.approx([0.25] * 4, abs=1e-3)
    assert all(tick.equal for tick in found.ticks)


def test_the_sides_are_runs_like_any_other(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[bool, int]] = []
    original = model.module.forward

    def forward(**inputs: Any) -> Any:
        shapes.append((inputs["use_cache"], inputs["input_ids"].shape[1]))
        return original(**inputs)

    monkeypatch.setattr(model.module, "forward", forward)
    items = race(model, replace(asked(5), run="r"))
    shapes.clear()  # the probe's
    found = held(items)
    prompt = len(found.cached.prompt_ids)
    assert [n for cached, n in shapes if cached] == [prompt, 1, 1, 1, 1]
    assert [n for cached, n in shapes if not cached] == [prompt + k for k in range(5)]
    assert (found.cached.id, found.uncached.id) == ("r.cached", "r.uncached")
    for step in found.uncached.lanes[0].steps:
        assert (step.positions_computed, step.positions_reused) == (prompt + step.step, 0)
        assert (step.kv_tokens, step.kv_used_bytes, step.kv_allocated_bytes, step.kv_predicted_bytes) == (
            0,
            0,
            0,
            0,
        )
    assert (
        sum(step.positions_computed for step in found.uncached.lanes[0].steps)
        == work(prompt, 5, cached=False).kv_computed
    )
    assert sum(step.positions_computed for step in found.cached.lanes[0].steps) == prompt + 4
    loaded_again = loads_trace(dumps_trace([found.cached, found.uncached])).runs
    assert loaded_again == [found.cached, found.uncached]
    assert [run.started.request.cached for run in loaded_again if run.started] == [True, False]


def test_the_sides_take_turns_and_neither_is_always_first(model: LoadedModel) -> None:
    items = list(race(model, asked(4)))
    order = [
        ("tick" if isinstance(item, Ticked) else item.run.rpartition(".")[2])
        for item in items
        if isinstance(item, Stepped | Ticked)
    ]
    assert order == [
        "cached", "uncached", "tick", "uncached", "cached", "tick",
        "cached", "uncached", "tick", "uncached", "cached", "tick",
    ]  # fmt: skip
    assert isinstance(items[-1], Raced)
    sides = held(iter(items))
    assert [run.prefilled.warm_up for run in (sides.cached, sides.uncached) if run.prefilled] == [
        False,
        False,
    ]


@pytest.mark.alone
def test_a_clock_leaves_the_other_sides_time_out(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 32 of a race: a step of one side never holds the seconds of the other."""
    import time

    model = make_model()
    original = model.module.forward

    def forward(**inputs: Any) -> Any:
        if not inputs["use_cache"]:
            time.sleep(0.03)
        return original(**inputs)

    monkeypatch.setattr(model.module, "forward", forward)
    found = held(race(model, asked(8)))
    steps, slow = found.cached.lanes[0].steps, found.uncached.lanes[0].steps
    assert max(step.end_seconds - step.start_seconds for step in steps[1:]) < 0.03
    assert steps[-1].end_seconds - steps[0].end_seconds < 7 * 0.03  # though seven slow steps lie between
    assert slow[-1].end_seconds - slow[0].end_seconds >= 7 * 0.03
    assert all(one.start_seconds <= one.end_seconds for one in (*steps, *slow))


def test_a_stop_ends_both_sides_and_keeps_what_there_is(model: LoadedModel) -> None:
    control, found = Control(), Race()
    for item in race(model, asked(500), control=control):
        follow(found, item)
        if isinstance(item, Ticked) and item.step == 3:
            control.stop()
    assert [run.lanes[0].finish_reason for run in (found.cached, found.uncached)] == ["cancelled"] * 2
    assert [len(run.lanes[0].steps) for run in (found.cached, found.uncached)] == [4, 4]
    assert found.raced is not None
    assert (found.raced.compared_steps, found.raced.tokens_equal, found.raced.first_divergence) == (
        4,
        True,
        None,
    )
    assert found.raced.uncached == work(len(found.cached.prompt_ids), 4, cached=False)


def test_closing_a_race_stops_it(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    items = race(model, asked(500))
    while not isinstance(next(items), Ticked):
        pass
    items.close()  # type: ignore[attr-defined]
    assert list(items) == []
    monkeypatch.setattr(model.module, "forward", lambda **_: pytest.fail("a forward ran"))


def test_a_stop_token_ends_both_alike(model: LoadedModel) -> None:
    ids = held(race(model, asked(30))).cached.lanes[0].token_ids
    ending = loaded(model.module, model.tokenizer)
    ending.stop_ids = frozenset({ids[6]})
    found = held(race(ending, asked(30)))
    first = ids.index(ids[6])
    assert found.cached.lanes[0].token_ids == found.uncached.lanes[0].token_ids == ids[: first + 1]
    assert found.raced is not None and found.raced.first_divergence is None


@pytest.mark.parametrize(
    ("request_", "refusal", "sentence"),
    [
        (Request("", (GREEDY,), chat=False), RequestError, "prompt is empty"),
        (Request("a", (GREEDY, GREEDY), chat=False), RequestError, "give one greedy lane"),
        (Request("a", (Decoding(seed=1),), chat=False), RequestError, "give one greedy lane"),
        (asked(0), InvalidSetting, "max_new_tokens"),
        (asked(5000), RequestError, "at most 4,096 tokens of prompt and answer"),
    ],
)
def test_what_cannot_be_raced_is_one_sentence(
    model: LoadedModel, request_: Request, refusal: type[Exception], sentence: str
) -> None:
    with pytest.raises(refusal, match=sentence) as refused:
        race(model, request_)
    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("broken", "sentence"), [("raises", "does not run without its KV cache"), ("other", "answers differently"),
                             ("nan", "answers differently")],
)  # fmt: skip
def test_a_model_that_needs_its_cache_is_refused(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch, broken: str, sentence: str
) -> None:
    model = make_model()
    original = model.module.forward

    def forward(**inputs: Any) -> Any:
        output = original(**inputs)
        if not inputs["use_cache"]:
            if broken == "raises":
                raise ValueError("no cache, no answer")
            output.logits = output.logits.flip(-1) if broken == "other" else output.logits * float("nan")
        return output

    monkeypatch.setattr(model.module, "forward", forward)
    with pytest.raises(RequestError, match=sentence) as refused:
        race(model, asked(5))
    assert str(refused.value).endswith("race another model.")


@torch.inference_mode()
def test_a_real_family_that_answers_differently() -> None:
    """Bamba in transformers 5.24: a step from its cache is not the full forward. Refused exactly where so."""
    model, ids = tiny("bamba"), torch.tensor([[292, 318, 316, 270] * 6])
    cache = new_cache(model.module)
    forward(model.module, ids[:, :-1], cache)
    stepped, whole = forward(model.module, ids[:, -1:], cache), forward(model.module, ids, None)
    try:
        race(model, asked(4))
        refused = False
    except RequestError as error:
        refused = "answers differently" in str(error)
    assert refused is (float((stepped - whole).abs().max()) > 0.1)


def test_a_failure_on_one_side_is_told_and_the_other_goes_on(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    items = race(model, asked(6))
    original = model.module.forward

    def forward(**inputs: Any) -> Any:
        if not inputs["use_cache"] and inputs["input_ids"].shape[1] > 8:
            raise MemoryError
        return original(**inputs)

    monkeypatch.setattr(model.module, "forward", forward)
    report = race_report(held(items))
    assert "not enough memory" in report["uncached"]["error"]
    assert report["cached"]["error"] is None
    assert len(report["cached"]["token_ids"]) == 6 > len(report["uncached"]["token_ids"])


@pytest.mark.model
def test_the_default_model_in_fp32(default_model: LoadedModel) -> None:
    """Case 33: in fp32 all tokens are the same, the cache on and off."""
    found = held(race(default_model, Request("What is gravity?", (replace(GREEDY, max_new_tokens=16),))))
    assert found.raced is not None and found.raced.tokens_equal
    assert found.cached.lanes[0].token_ids == found.uncached.lanes[0].token_ids
    assert found.raced.max_logit_difference is not None and found.raced.max_logit_difference < 1e-2
