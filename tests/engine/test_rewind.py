"""Continue, rewind, branch: less is computed, and nothing else changes."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some

from playground.core.branch import NoSuchStep, continued
from playground.core.decoding import GREEDY, Decoding
from playground.core.events import Prefilled
from playground.core.request import Parent, Request
from playground.core.run import Run, fold
from playground.core.trace import dumps_trace, loads_trace
from playground.engine.decode import stream
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.store import CacheStore
from tests.engine.families import FAMILIES, WINDOW, WINDOWED, WITH_STATE, tiny

HOT = Decoding(temperature=1.4, top_p=0.98, seed=11, repetition_penalty=1.2, penalty_scope="output")
PROMPT = tuple(5 + i * 7 % 300 for i in range(9))
MODELS = {name: tiny(name) for name in ("llama", "mistral", "mamba2")}
TOLERANCE = {"qwen3_next": 1e-3, "bamba": 1e-4, "falcon_h1": 1e-4}
"""Of probabilities and logits where more than 1.1e-5 was seen: the chunked delta rule and the scans add up
in another order than single steps do, and the weights here are spread widely, which amplifies it."""


def run(model: LoadedModel, *lanes: Decoding, tokens: int = 20, **request: Any) -> Run:
    decodings = tuple(replace(lane, max_new_tokens=tokens) for lane in lanes)
    return fold(stream(model, Request(**({"prompt_ids": PROMPT, "lanes": decodings} | request))))


def go_on(model: LoadedModel, parent: Run, step: int | None = None, tokens: int = 20, **how: Any) -> Run:
    request = continued(parent, step, **how)
    return fold(stream(model, replace(request, lanes=(replace(request.lanes[0], max_new_tokens=tokens),))))


def prefilled(run: Run) -> Prefilled:
    assert run.prefilled is not None
    return run.prefilled


def kinds(run: Run) -> list[str]:
    return [note.key for note in prefilled(run).notes]


def assert_same_from(step: int, whole: Run, rest: Run, lane: int = 0, within: float = 1e-5) -> None:
    """`rest` makes the steps of `whole` from `step` on: ids, draws, probabilities."""
    expected = whole.lanes[lane].steps[step:]
    assert [s.token.id for s in rest.lanes[0].steps] == [s.token.id for s in expected]
    for a, b in zip(rest.lanes[0].steps, expected, strict=True):
        assert a.draw == b.draw and a.kept_count == b.kept_count
        assert a.processed_probability == pytest.approx(b.processed_probability, abs=within)
        assert a.raw_logprob == pytest.approx(b.raw_logprob, abs=10 * within)
        assert a.position == b.position


@pytest.mark.parametrize("decoding", [GREEDY, HOT], ids=["greedy", "sampled"])
@pytest.mark.parametrize("name", FAMILIES)
def test_going_on_from_any_step_repeats_the_run(name: str, decoding: Decoding) -> None:
    """Every kind of cache; several branches of one run, in any order."""
    model = tiny(name)
    whole = run(model, decoding)
    for step in (19, 7, 0, 1, 20, 7):
        rest = go_on(model, whole, step, tokens=20 - step or 5)
        if step < 20:
            assert_same_from(step, whole, rest, within=TOLERANCE.get(name, 1e-5))
        length, event = len(PROMPT) + step, prefilled(rest)
        assert event.tokens_computed + event.tokens_reused == length
        assert event.kv_tokens == length
        can = step == 20 or name not in (*WITH_STATE, *WINDOWED)
        if can:
            assert (event.tokens_reused, kinds(rest)) == (length - 1, [])
        else:
            assert event.tokens_reused == 0
            assert kinds(rest) == ["again_state" if name in WITH_STATE else "again_window"]
            assert prefilled(rest).notes[0].detail == str(length - 1)


def test_a_window_that_has_not_moved_is_cropped() -> None:
    model = tiny("mistral")
    whole = run(model, GREEDY, tokens=WINDOW - len(PROMPT))  # one token short of moving
    rest = go_on(model, whole, 3, tokens=WINDOW - len(PROMPT) - 3)
    assert_same_from(3, whole, rest)
    assert prefilled(rest).tokens_reused == len(PROMPT) + 2 and kinds(rest) == []


@settings(max_examples=60, deadline=None)
@given(
    name=some.sampled_from(sorted(MODELS)),
    length=some.integers(1, 24),
    seed=some.integers(0, 2**53 - 1),
    temperature=some.sampled_from([0.0, 0.6, 1.0, 2.5]),
    lanes=some.sampled_from([1, 4]),
    where=some.floats(0, 1),
    which=some.integers(0, 3),
)
def test_draws_after_any_rewind_are_those_of_the_whole_run(
    name: str, length: int, seed: int, temperature: float, lanes: int, where: float, which: int
) -> None:
    model = MODELS[name]
    model.caches.clear()
    decodings = [Decoding(temperature=temperature, top_p=0.95, seed=(seed + i) % 2**53) for i in range(lanes)]
    whole = run(model, *decodings, tokens=length)
    step, lane = int(where * (length - 1)), which % lanes
    rest = go_on(model, whole, step, lane=lane, tokens=length - step)
    assert_same_from(step, whole, rest, lane)


def test_a_branch_of_a_branch_keeps_its_place_in_the_story() -> None:
    model = tiny("llama")
    whole = run(model, HOT, tokens=30)
    first = go_on(model, whole, 10, tokens=12)
    second = go_on(model, first, 5, tokens=15)
    assert second.started is not None
    assert second.started.request.parent == Parent(first.id, 15)
    assert_same_from(15, whole, second)
    assert prefilled(second).tokens_computed == 1


@pytest.mark.parametrize("name", ["llama", "mistral", "deepseek_v3", "qwen3_next", "mamba2"])
def test_another_token_makes_a_branch_like_a_fresh_run(name: str) -> None:
    model = tiny(name)
    whole = run(model, GREEDY, HOT)
    other = next(c.token.id for c in whole.lanes[1].steps[6].candidates if c.removed_by is None)
    branch = go_on(model, whole, 6, lane=1, forced=other, tokens=12)
    assert branch.started is not None and branch.started.request.parent == Parent(whole.id, 7, 1)
    ids = (*PROMPT, *whole.lanes[1].token_ids[:6], other)
    assert tuple(branch.prompt_ids) == ids
    fresh = run(model, HOT, tokens=12, prompt_ids=ids, parent=Parent("nobody", 7))
    assert_same_from(0, fresh, branch, within=TOLERANCE.get(name, 1e-5))
    assert kinds(fresh) == ["again_gone"] and prefilled(fresh).tokens_reused == 0


def test_a_parent_of_one_lane_is_continued_in_several() -> None:
    model = tiny("llama")
    whole = run(model, HOT)
    request = continued(whole, 8)
    several = fold(stream(model, replace(request, lanes=(replace(HOT, max_new_tokens=12),) * 4)))
    assert prefilled(several).tokens_computed == 1
    for lane in several.lanes:
        assert lane.token_ids == whole.lanes[0].token_ids[8:]


def test_a_stopped_run_is_gone_on_with_where_it_stood() -> None:
    model = tiny("llama")
    whole = run(model, HOT, GREEDY)
    events, made = stream(model, replace(_request(whole), run="stopped")), Run()
    for event in events:
        made = fold([*made.events, event])
        if len(made.lanes[1].steps) == 6:
            break
    events.close()  # type: ignore[attr-defined]
    for lane in (0, 1):
        rest = go_on(model, made, lane=lane, tokens=14)
        assert_same_from(6, whole, rest, lane)
        assert prefilled(rest).tokens_computed == 1


def test_an_evicted_cache_costs_a_prefill_and_says_so() -> None:
    model = tiny("llama")
    whole = run(model, HOT)
    model.caches = CacheStore()
    rest = go_on(model, whole, 12, tokens=8)
    assert_same_from(12, whole, rest)
    (note,) = rest.notes
    assert note.key == "again_gone" and note.detail == "21" and "21 tokens were read again" in note.text
    assert loads_trace(dumps_trace([rest])).runs == [rest]


def test_reading_again_in_16_bit_is_said_in_its_own_sentence(make_model: Any) -> None:
    model = make_model()
    model.module, model.facts = model.module.to(torch.bfloat16), replace(model.facts, dtype="bfloat16")
    whole = run(model, GREEDY)
    assert [note.key for note in go_on(model, whole, 8).notes] == ["sixteen_bit"]
    model.caches = CacheStore()
    again = go_on(model, whole, 8)
    assert [note.key for note in again.notes] == ["sixteen_bit", "again_gone", "again_16_bit"]
    assert "flip a later choice" in again.notes[-1].text


@pytest.mark.parametrize("step", [-1, 30, True, 1.5])
def test_a_parent_step_outside_the_text_is_refused(model: LoadedModel, step: Any) -> None:
    with pytest.raises(RequestError, match="from step 0 to 9"):
        run(model, GREEDY, parent=Parent("x", step))


def test_a_step_that_the_run_does_not_have_is_refused(model: LoadedModel) -> None:
    whole = run(model, GREEDY, tokens=4)
    for wrong in (dict(step=5), dict(step=-1), dict(lane=1)):
        with pytest.raises(NoSuchStep, match=r"The run (has no lane|can be continued)"):
            continued(whole, **wrong)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_prompt_read_in_chunks_is_the_prompt_read_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every kind: chunk borders inside and outside windows, also one token past a chunk."""
    model, ids = tiny(name), tuple(5 + i * 7 % 300 for i in range(61))
    found = []
    for chunk in (256, 60, 24, 7):
        monkeypatch.setattr("playground.engine.decode.PREFILL_CHUNK_TOKENS", chunk)
        logits = _Logits()
        made = fold(
            stream(
                model,
                Request(prompt_ids=ids, lanes=(replace(GREEDY, max_new_tokens=8),)),
                callbacks=[logits],
            )
        )
        assert prefilled(made).tokens_computed == 61
        found.append((made.lanes[0].token_ids, logits.rows))
    for chosen, rows in found[1:]:
        assert chosen == found[0][0]
        for row, expected in zip(rows, found[0][1], strict=True):
            within = TOLERANCE.get(name, 1.1e-5 * float(expected.abs().max()))
            assert float((row - expected).abs().max()) < within


class _Logits:
    """Keeps the raw logits of each step."""

    def __init__(self) -> None:
        self.rows: list[torch.Tensor] = []

    def on_step(self, event: Any, live: Any) -> None:
        self.rows.append(live.raw_logits[0].clone())


def _request(run: Run) -> Request:
    assert run.started is not None
    return run.started.request
