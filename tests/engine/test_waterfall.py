"""The waterfall of a step: every stage's part, by the stages that draw."""

import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.stages import ORDERS, STAGE_ORDER
from playground.core.waterfall import StageEffect, Waterfall, WaterfallRow
from playground.engine.pipeline import build
from playground.engine.raw import BrokenLogits
from playground.engine.waterfall import waterfall
from tests.engine.reference import choose_from

PLAIN = Decoding(temperature=1.0, top_p=1.0)
ALL_ON = Decoding(
    temperature=1.3, top_k=40, top_p=0.95, min_p=0.01, typical_p=0.9, repetition_penalty=1.4, seed=1
)


def log(*probabilities: float) -> torch.Tensor:
    return torch.tensor(probabilities).log()


def effect(found: Waterfall, name: str) -> StageEffect:
    return next(stage for stage in found.stages if stage.name == name)


def row_of(found: Waterfall, id: int) -> WaterfallRow:
    return next(row for row in found.rows if row.id == id)


def test_the_shares_of_stages_multiply_to_what_is_left() -> None:
    """Top-k keeps 90 %, top-p 7/9 of that: 70 %."""
    found = waterfall(log(0.4, 0.3, 0.2, 0.1), [], replace(PLAIN, top_k=3, top_p=0.7))
    top_k, top_p = found.stages
    assert (top_k.name, top_k.setting, top_k.kept_count, top_k.removed_count) == ("top_k", 3.0, 3, 1)
    assert (top_p.name, top_p.setting, top_p.kept_count, top_p.removed_count) == ("top_p", 0.7, 2, 1)
    assert (top_k.kept_share, top_k.kept_mass) == (pytest.approx(0.9), pytest.approx(0.9))
    assert (top_p.kept_share, top_p.kept_mass) == (pytest.approx(7 / 9), pytest.approx(0.7))
    assert [row.removed_by for row in found.rows] == [None, None, "top_p", "top_k"]
    assert row_of(found, 0).probabilities == (pytest.approx(4 / 9), pytest.approx(4 / 7))
    assert row_of(found, 3).logits == (None, None) and row_of(found, 3).probabilities == (0.0, 0.0)
    assert row_of(found, 2).probabilities == (pytest.approx(2 / 9), 0.0)


def test_a_stage_is_inert_only_where_the_chain_without_it_ends_the_same() -> None:
    row = log(0.6, 0.3, 0.06, 0.04)
    covered = waterfall(row, [], replace(PLAIN, top_k=3, top_p=0.7))
    assert effect(covered, "top_k").removed_count == 1 and effect(covered, "top_k").inert
    assert not effect(covered, "top_p").inert
    needed = waterfall(row, [], replace(PLAIN, top_k=2, top_p=0.95))
    assert not effect(needed, "top_k").inert and effect(needed, "top_p").inert
    same = waterfall(row, [], replace(PLAIN, top_k=2, top_p=0.9))
    assert [stage.inert for stage in same.stages] == [True, True]  # each alone would do


def test_reshaping_is_inert_only_where_the_probabilities_stay() -> None:
    row = log(0.6, 0.3, 0.1)
    warm = waterfall(row, [], replace(PLAIN, temperature=1.5, top_k=2))
    assert not effect(warm, "temperature").inert and effect(warm, "temperature").kept_share == 1
    assert effect(waterfall(row, [], replace(PLAIN, temperature=1.5, top_k=1)), "temperature").inert
    assert not effect(waterfall(row, [0], replace(PLAIN, repetition_penalty=1.3)), "repetition_penalty").inert
    unseen = waterfall(row, [2], replace(PLAIN, repetition_penalty=1.3, top_k=2))
    assert effect(unseen, "repetition_penalty").inert  # the one it touches is removed either way


def test_penalised_rows_are_marked_within_the_scope() -> None:
    """Case 16: of "the dog barks", with the prompt's two words and one of the answer."""
    row, ids = torch.tensor([2.0, 1.0, -1.0, 0.5]), [0, 1, 2]
    every = waterfall(row, ids, replace(PLAIN, repetition_penalty=2.0), prompt_tokens=2)
    answer = replace(PLAIN, repetition_penalty=2.0, penalty_scope="output")
    output = waterfall(row, ids, answer, prompt_tokens=2)
    assert {row.id for row in every.rows if row.penalised} == {0, 1, 2} and every.penalty_scope == "all"
    assert {row.id for row in output.rows if row.penalised} == {2} and output.penalty_scope == "output"
    assert row_of(every, 0).logits == (1.0,) and row_of(every, 2).logits == (-2.0,)
    assert row_of(output, 0).logits == (2.0,)
    assert not any(row.penalised for row in waterfall(row, ids, PLAIN).rows)


def test_greedy_is_the_last_filter() -> None:
    found = waterfall(log(0.2, 0.5, 0.3), [], GREEDY)
    (greedy,) = found.stages
    assert (greedy.name, greedy.setting, greedy.kept_count, greedy.inert) == ("greedy", None, 1, False)
    assert greedy.kept_share == pytest.approx(0.5)
    assert [(row.id, row.removed_by) for row in found.rows] == [(1, None), (2, "greedy"), (0, "greedy")]
    assert row_of(found, 1).probabilities == (1.0,)
    penalised = waterfall(log(0.2, 0.5, 0.3), [1], replace(GREEDY, repetition_penalty=1.1))
    assert effect(penalised, "repetition_penalty").inert  # the most probable is the same


def test_rows_are_those_before_and_those_after() -> None:
    row = torch.tensor([0.4, *[0.01] * 60]).log()  # the best is less typical than the many
    found = waterfall(row, [], replace(PLAIN, typical_p=0.3), top_n=2)
    assert [(one.id, one.removed_by) for one in found.rows] == [(0, "typical_p"), (1, None), (2, None)]
    assert waterfall(row, [], PLAIN, top_n=0).rows == ()


def test_impossible_candidates_are_no_rows_and_nan_is_refused() -> None:
    row = torch.tensor([0.0, -torch.inf, 1.0, -torch.inf])
    found = waterfall(row, [], replace(PLAIN, temperature=0.5), top_n=4)
    assert found.possible_count == 2 and [r.id for r in found.rows] == [2, 0]
    with pytest.raises(BrokenLogits):
        waterfall(torch.tensor([0.0, math.nan]), [], ALL_ON)
    with pytest.raises(InvalidSetting):
        waterfall(row, [], replace(PLAIN, top_p=2.0))


def test_it_is_plain_json() -> None:
    found = waterfall(
        torch.randn(100, generator=torch.Generator().manual_seed(0)),
        [3, 4],
        replace(ALL_ON, bias=((5, 1.0),), banned=(6,)),
    )
    read = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert [stage["name"] for stage in read["stages"]] == list(STAGE_ORDER)
    assert len(read["rows"]) >= 20 and all(len(row["logits"]) == len(STAGE_ORDER) for row in read["rows"])
    assert [stage["setting"] for stage in read["stages"] if stage["name"] in ("bias", "ban")] == [None, None]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.one_of(st.sampled_from(list(ORDERS.values())), st.permutations(STAGE_ORDER).map(tuple)),
    scale=st.sampled_from([0.5, 2.0, 6.0]),
    greedy=st.booleans(),
)
def test_the_waterfall_is_what_was_drawn_from(
    seed: int, order: tuple[str, ...], scale: float, greedy: bool
) -> None:
    """Its last column is the distribution of the draw, its counts and masses those of the record."""
    row = torch.randn(300, generator=torch.Generator().manual_seed(seed)) * scale
    ids = torch.tensor([5, 7, 7, 299])
    decoding = replace(ALL_ON, order=order, temperature=0.0 if greedy else 1.3)
    choice, scores = choose_from(row, ids, build(decoding, 2), None if greedy else 0.3, 300)
    found = waterfall(row, ids.tolist(), decoding, prompt_tokens=2, top_n=300)
    processed = scores.double().softmax(0)
    assert len(found.rows) == 300
    for one in found.rows:
        assert one.probabilities[-1] == pytest.approx(float(processed[one.id]), abs=1e-12)
    assert [(s.name, s.kept_count) for s in choice.stages] == [(s.name, s.kept_count) for s in found.stages]
    removed = dict(zip(choice.candidates.ids, choice.candidates.removed_by, strict=True))
    assert {one.id: one.removed_by for one in found.rows} == removed
    if not greedy:  # greedy's mass in the record is under the raw distribution
        assert [s.kept_mass for s in choice.stages] == pytest.approx(
            [s.kept_mass for s in found.stages], rel=1e-5
        )
