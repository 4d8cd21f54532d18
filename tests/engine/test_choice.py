"""Stages and draws on rows of logits: masks, ties, boundaries, and the packed record."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from playground.core.decoding import Decoding
from playground.core.stages import ORDERS
from playground.engine.draw import pick, survive
from playground.engine.filters import TopP
from playground.engine.pipeline import build, highest, ranked
from playground.engine.raw import BrokenLogits
from tests.engine.reference import choose_from

NO_IDS = torch.tensor([], dtype=torch.long)


def log(*probabilities: float) -> torch.Tensor:
    return torch.tensor(probabilities).log()


@pytest.mark.parametrize(
    ("probabilities", "top_p", "kept"),
    [
        ((0.5, 0.3, 0.1, 0.1), 0.8, [0, 1]),
        ((0.5, 0.3, 0.2), 0.6, [0, 1]),
        ((0.5, 0.3, 0.2), 0.5, [0]),
        ((0.2, 0.3, 0.5), 0.8, [1, 2]),
        ((0.25, 0.25, 0.25, 0.25), 0.5, [0, 1]),
        ((0.5, 0.3, 0.2), 0.0, [0]),
        ((0.7, 0.1, 0.1, 0.1), 0.9, [0, 1, 2]),
        ((0.6, 0.1, 0.1, 0.2), 0.8, [0, 3]),
        ((0.85, 0.1, 0.05), 0.95, [0, 1]),
        ((0.09, 0.9, 0.01), 0.99, [0, 1]),
    ],
)
def test_the_smallest_set_that_reaches_p(
    probabilities: tuple[float, ...], top_p: float, kept: list[int]
) -> None:
    """Case 13."""
    row = TopP(top_p)(NO_IDS, log(*probabilities)[None])[0]
    assert row.isfinite().nonzero()[:, 0].tolist() == kept


def test_p_of_one_keeps_all() -> None:
    assert build(Decoding(temperature=1.0, top_p=1.0), 0) == ()


def test_ties_are_ranked_by_id() -> None:
    row = torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0])
    values, ids = ranked(row, row > 1)
    assert ids.tolist() == [1, 2, 4, 3] and values.tolist() == [3.0, 3.0, 3.0, 2.0]
    assert highest(row[None], 4)[0].tolist() == [1, 2, 4, 3] and highest(row[None], 2)[0].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("draw", "id"), [(0.0, 1), (0.49, 1), (0.51, 2), (0.79, 2), (0.81, 0), (0.999999, 0)]
)
def test_the_draw_walks_the_ranked_distribution(draw: float, id: int) -> None:
    assert int(pick(survive(log(0.2, 0.5, 0.3)), draw)) == id


def test_the_last_draw_lands_on_the_last_kept_token() -> None:
    row = torch.full((5000,), -torch.inf)
    row[[7, 4000]] = log(0.5, 0.5)
    assert int(pick(survive(row), 1 - 2**-53)) == 4000


@pytest.mark.parametrize("size", [3, 1500, 6000])
def test_draws_follow_the_distribution_beyond_the_head_too(size: int) -> None:
    row = torch.randn(size, generator=torch.Generator().manual_seed(1))
    survivors = survive(row)
    order = survivors.order.tolist()
    order += sorted(set(range(size)) - set(order))
    mass = row.double().softmax(0)[order].cumsum(0)
    for draw in torch.linspace(0, 1 - 1e-9, 101, dtype=torch.float64).tolist():
        place = min(int(torch.searchsorted(mass, draw, right=True)), size - 1)
        assert int(pick(survivors, draw)) == order[place]


def test_the_record_of_a_choice() -> None:
    row = log(0.4, 0.3, 0.2, 0.1)
    choice, scores = choose_from(row, NO_IDS, build(Decoding(temperature=1.0, top_k=3, top_p=0.7), 0), 0.9, 4)
    assert (choice.id, choice.raw_rank, choice.kept_count) == (1, 2, 2)
    assert choice.processed_probability == pytest.approx(3 / 7)
    assert choice.kept_mass == pytest.approx(0.7)
    assert [(s.name, s.kept_count) for s in choice.stages] == [("top_k", 3), ("top_p", 2)]
    assert choice.stages[0].kept_mass == pytest.approx(0.9)
    assert choice.candidates.removed_by == [None, None, "top_p", "top_k"]
    assert choice.raw_entropy_bits == pytest.approx(-sum(p * math.log2(p) for p in (0.4, 0.3, 0.2, 0.1)))
    assert choice.processed_entropy_bits == pytest.approx(-sum(p * math.log2(p) for p in (4 / 7, 3 / 7)))
    assert scores.isfinite().tolist() == [True, True, False, False]


def test_mass_is_measured_after_temperature_and_before_filters() -> None:
    row = log(0.6, 0.3, 0.1)
    choice, _ = choose_from(row, NO_IDS, build(Decoding(temperature=2.0, top_k=2, top_p=1.0), 0), 0.1, 3)
    warm = (row / 2).softmax(0)
    assert choice.kept_mass == pytest.approx(float(warm[0] + warm[1]))


def test_mass_is_what_the_chain_has_left_in_any_order() -> None:
    """Filters act on the model's own probabilities where temperature comes last, as in llama.cpp."""
    row = log(0.6, 0.3, 0.1)
    cold = Decoding(temperature=0.25, top_k=2, top_p=1.0, order=ORDERS["llama.cpp"])
    choice, scores = choose_from(row, NO_IDS, build(cold, 0), 0.1, 3)
    assert [(s.name, s.kept_count) for s in choice.stages] == [("top_k", 2), ("temperature", 2)]
    assert [s.kept_mass for s in choice.stages] == pytest.approx([0.9, 0.9]) and choice.kept_mass < 0.91
    assert choice.candidates.removed_by == [None, None, "top_k"]
    between = replace(cold, top_p=0.5, order=("top_k", "temperature", "top_p"))
    choice, _ = choose_from(row, NO_IDS, build(between, 0), 0.1, 3)
    sharp = 0.6**4 / (0.6**4 + 0.3**4)  # what top-p keeps of the two
    assert [s.kept_mass for s in choice.stages] == pytest.approx([0.9, 0.9, 0.9 * sharp])
    assert torch.equal(scores.isfinite(), torch.tensor([True, True, False]))


def test_the_order_decides_what_is_kept() -> None:
    row = log(0.5, 0.3, 0.2)
    hot = Decoding(temperature=10.0, top_p=0.75)
    kept = [
        choose_from(row, NO_IDS, build(replace(hot, order=order), 0), 0.0, 3)[0].kept_count
        for order in ORDERS.values()
    ]
    assert kept == [3, 2]


@pytest.mark.parametrize("temperature", [1e-40, 1e-30, 1e-3, 100.0])
def test_no_temperature_breaks_the_numbers(temperature: float) -> None:
    row = torch.tensor([40.0, 39.0, -300.0])
    choice, scores = choose_from(row, NO_IDS, build(Decoding(temperature=temperature, top_p=1.0), 0), 0.3, 3)
    assert not scores.isnan().any() and math.isfinite(choice.processed_entropy_bits)
    assert choice.id == 0 and (choice.processed_probability == 1) == (temperature < 0.1)


def test_impossible_logits_do_not_break_the_record() -> None:
    row = torch.tensor([0.0, -torch.inf, 1.0, -torch.inf])
    choice, _ = choose_from(row, NO_IDS, (), None, 2)
    assert choice.id == 2 and choice.kept_count == 1 and math.isfinite(choice.raw_entropy_bits)
    assert choose_from(row, NO_IDS, (), 0.5, 4)[0].candidates.ids == [2, 0]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_numbers_are_refused(bad: float) -> None:
    with pytest.raises(BrokenLogits):
        choose_from(torch.tensor([0.0, bad, 1.0]), NO_IDS, (), 0.5, 2)
    with pytest.raises(BrokenLogits):
        choose_from(torch.full((3,), -torch.inf), NO_IDS, (), None, 2)


def test_ties_at_the_edge_of_the_shown_go_to_the_lowest_ids() -> None:
    row = torch.zeros(5000)
    row[4000] = 1.0
    assert highest(row[None], 4)[0].tolist() == [4000, 0, 1, 2]
    row[4000], row[7] = 50.0, -1.0  # few near the best: left to topk
    assert highest(row[None], 9)[0].tolist() == [4000, 0, 1, 2, 3, 4, 5, 6, 8]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), scale=st.sampled_from([0.1, 2.0, 12.0]), count=st.sampled_from([1, 20, 300])
)
def test_the_shown_are_the_head_of_a_full_sort(seed: int, scale: float, count: int) -> None:
    row = (
        (torch.randn(9000, generator=torch.Generator().manual_seed(seed)) * scale).to(torch.bfloat16).float()
    )
    assert (
        highest(row[None], count)[0].tolist()
        == row.sort(descending=True, stable=True).indices[:count].tolist()
    )


def test_a_draw_at_the_top_edge_beyond_a_head_that_holds_everything() -> None:
    row = torch.full((2000,), -900.0)
    row[:1024] = 0.0
    assert int(pick(survive(row), 1 - 2**-53)) == 1023


@pytest.mark.parametrize("draw", [0.0, 0.5, 0.999999])
def test_scores_so_large_that_ten_less_is_the_same(draw: float) -> None:
    tied = torch.full((5000,), 1e9)
    assert abs(int(pick(survive(tied), draw)) - draw * 5000) <= 1
    assert float(survive(torch.full((5000,), 1e16)).shares.sum()) == pytest.approx(1)
    choice, _ = choose_from(torch.full((4,), 1e16), NO_IDS, (), 0.3, 4)
    assert choice.candidates.raw_logprobs == pytest.approx([math.log(1 / 4)] * 4)
    alone = torch.full((5000,), 0.9e8)
    alone[7] = 1e8
    assert int(pick(survive(alone), draw)) == 7
