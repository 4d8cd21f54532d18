"""Forced, banned and favoured tokens, and runs that go on from a step told as one run."""

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from playground.core.branch import continued
from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.events import Event, Stepped
from playground.core.joining import Joined
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.core.trace import dumps_trace, loads_trace
from playground.engine.decode import stream
from tests.engine.families import tiny

MODEL = tiny("llama")
PROMPT = tuple(5 + i * 7 % 300 for i in range(9))
HOT = Decoding(temperature=1.4, top_p=0.9, seed=11)


def made(*lanes: Decoding, tokens: int = 12) -> Run:
    lanes = tuple(replace(lane, max_new_tokens=tokens) for lane in lanes)
    return fold(stream(MODEL, Request(prompt_ids=PROMPT, lanes=lanes)))


def gone_on(parent: Run, step: int, tokens: int = 12, **changes: object) -> Run:
    """`parent` from `step` on, told as one run."""
    asked = continued(parent, step)
    lane = replace(asked.lanes[0], max_new_tokens=tokens - step, **changes)  # type: ignore[arg-type]
    joined = Joined(parent, step)

    def told() -> Iterator[Event]:
        for event in stream(MODEL, replace(asked, lanes=(lane,))):
            yield from joined.told(event)

    return fold(told())


def own_logits(ids: list[int]) -> torch.Tensor:
    with torch.no_grad():  # not inference mode: the tests change the row
        return MODEL.module(torch.tensor([[*PROMPT, *ids]])).logits[0, -1].float()


@pytest.mark.parametrize("decoding", [GREEDY, HOT], ids=["greedy", "sampled"])
@pytest.mark.parametrize("step", [0, 1, 7, 11])
def test_a_run_told_as_one_is_the_run_that_never_stopped(decoding: Decoding, step: int) -> None:
    whole = made(decoding)
    again = gone_on(whole, step)
    lane, before = again.lanes[0], whole.lanes[0]
    assert lane.token_ids == before.token_ids and lane.text == before.text
    assert [(s.step, s.position, s.draw) for s in lane.steps] == [
        (s.step, s.position, s.draw) for s in before.steps
    ]
    (event,) = lane.resumed
    assert (event.step, event.tokens_computed, event.tokens_reused) == (step, 1, len(PROMPT) + step - 1)
    assert event.parent == whole.id and again.id != whole.id
    ends = [s.end_seconds for s in lane.steps]
    assert ends == sorted(ends)
    assert loads_trace(dumps_trace([again])).records == [again]


@pytest.mark.parametrize("stops", [("fox 😊",), ("own fox", "😊 s"), ("n", "聪!"), ("never",)])
def test_words_and_characters_that_span_the_place_where_a_run_goes_on(stops: tuple[str, ...]) -> None:
    """For every place to go on from: the stop string that ends the unbroken run ends this one, the same is withheld,
    and a character whose bytes stand on both sides is whole."""
    ids = tuple(MODEL.tokenizer("own fox 😊 says 聪!", add_special_tokens=False)["input_ids"])
    told = replace(GREEDY, forced=ids)
    whole, parent = (made(one, tokens=len(ids)).lanes[0] for one in (replace(told, stop=stops), told))
    assert parent.text == "own fox 😊 says 聪!" and (whole.finish_reason == "stop_string") == (
        stops != ("never",)
    )
    run = made(told, tokens=len(ids))
    for step in range(1, len(whole.steps)):
        again = gone_on(run, step, tokens=len(ids), forced=ids[step:], stop=stops).lanes[0]
        assert again.finished is not None and whole.finished is not None
        assert (again.text, again.finish_reason) == (whole.text, whole.finish_reason), step
        assert again.finished.withheld_steps == whole.finished.withheld_steps, step
        assert again.finished.stop_string == whole.finished.stop_string
        assert again.step_texts() == whole.step_texts(), step
        held = [one.held_characters for one in again.steps[step:]]
        assert held == [one.held_characters for one in whole.steps[step:]], step


def test_a_run_goes_on_from_one_that_went_on_under_other_settings() -> None:
    whole = made(HOT)
    second = gone_on(whole, 6, temperature=0.0)
    third = gone_on(second, 9)
    assert third.lanes[0].token_ids == second.lanes[0].token_ids
    assert [event.step for event in third.lanes[0].resumed] == [6, 9]
    assert third.lanes[0].decoding_at(5).temperature == 1.4
    assert third.lanes[0].decoding_at(6).temperature == third.lanes[0].decoding_at(9).temperature == 0.0


@pytest.mark.parametrize("decoding", [GREEDY, replace(HOT, top_k=3)], ids=["greedy", "sampled"])
def test_a_forced_token_is_recorded_as_the_settings_see_it(decoding: Decoding) -> None:
    whole = made(decoding)
    ids = whole.lanes[0].token_ids
    raw = own_logits(ids[:4])
    order = raw.argsort(descending=True, stable=True).tolist()
    likely, unlikely = next(id for id in order if id != ids[4]), order[-1]
    branch = gone_on(whole, 4, forced=(likely, unlikely))
    first, second = branch.lanes[0].steps[4:6]
    assert (first.token.id, second.token.id) == (likely, unlikely)
    assert {first.origin, second.origin} == {"forced"} and first.draw is None
    assert first.raw_logprob == pytest.approx(float(raw.log_softmax(0)[likely]), abs=1e-5)
    assert first.raw_rank == order.index(likely) + 1
    after = own_logits([*ids[:4], likely])
    assert second.raw_logprob == pytest.approx(float(after.log_softmax(0)[unlikely]), abs=1e-4)
    assert second.raw_rank == int((after > after[unlikely]).sum()) + 1
    assert second.processed_probability == 0.0
    (own,) = [one for one in second.candidates if one.token.id == unlikely]
    assert own.removed_by == ("greedy" if decoding.greedy else "top_k")
    free = fold(stream(MODEL, replace(continued(whole, 4), prompt_ids=(*PROMPT, *ids[:4], likely, unlikely))))
    if decoding.greedy:
        assert branch.lanes[0].token_ids[6:] == free.lanes[0].token_ids[: 12 - 6]


def test_in_greedy_the_mass_belongs_to_what_would_have_been_taken() -> None:
    whole = made(GREEDY)
    step = gone_on(whole, 3, forced=(2,)).lanes[0].steps[3]
    taken = whole.lanes[0].steps[3].token.id
    assert step.processed_probability == float(taken == 2)
    assert [one.token.id for one in step.candidates if one.processed_probability == 1.0] == [taken]


def test_a_banned_token_is_out_once_or_for_good() -> None:
    whole = made(GREEDY)
    ids = whole.lanes[0].token_ids
    once = gone_on(whole, 4, banned=(ids[4],), once=True).lanes[0]
    raw = own_logits(ids[:4])
    raw[ids[4]] = -torch.inf
    assert once.token_ids[:5] == [*ids[:4], int(raw.argmax())]
    (out,) = [one for one in once.steps[4].candidates if one.token.id == ids[4]]
    assert (out.removed_by, out.processed_probability) == ("ban", 0.0)
    assert [stage.name for stage in once.steps[5].stages] == ["greedy"]
    for_good = gone_on(whole, 4, banned=(ids[4],)).lanes[0]
    assert ids[4] not in for_good.token_ids[4:]
    assert [stage.name for stage in for_good.steps[11].stages] == ["ban", "greedy"]


def test_a_favoured_token_has_so_much_more_of_a_logit() -> None:
    whole = made(replace(HOT, temperature=1.0, top_p=1.0))
    ids = whole.lanes[0].token_ids
    raw = own_logits(ids[:4])
    other = int(raw.argsort(descending=True)[3])
    step = gone_on(whole, 4, bias=((other, 2.5),)).lanes[0].steps[4]
    raw[other] += 2.5
    assert step.processed_probability == pytest.approx(float(raw.softmax(0)[step.token.id]), abs=1e-5)
    (own,) = [one for one in step.candidates if one.token.id == other]
    assert own.processed_probability == pytest.approx(float(raw.softmax(0)[other]), abs=1e-5)
    odds = math.exp(own.raw_logprob + 2.5)  # of its own forward: the other one rounds differently
    total = odds + 1 - math.exp(own.raw_logprob)
    assert own.processed_probability == pytest.approx(odds / total, abs=1e-7)


@pytest.mark.parametrize(
    "wrong",
    [{"forced": (10**6,)}, {"banned": (-1,)}, {"bias": ((5, 1000.0),)}, {"banned": tuple(range(2000))}],
)  # fmt: skip
def test_ids_that_are_none_are_one_sentence(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting) as refused:
        stream(MODEL, Request(prompt_ids=PROMPT, lanes=(replace(GREEDY, **wrong),)))  # type: ignore[arg-type]
    assert str(refused.value).endswith(".")


def test_a_branch_late_in_a_long_run_computes_two_positions_at_most() -> None:
    whole = made(GREEDY, tokens=250)
    asked = continued(whole, 200)
    lane = replace(asked.lanes[0], forced=(7,), max_new_tokens=2)
    branch = fold(stream(MODEL, replace(asked, lanes=(lane,))))
    assert branch.prefilled is not None and branch.prefilled.tokens_computed == 1
    steps = [event for event in branch.events if isinstance(event, Stepped)]
    assert [step.positions_computed for step in steps] == [1, 1]
