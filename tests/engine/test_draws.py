"""Draws follow the distribution that is shown, and are the same for any number of lanes.

The seeds are fixed, so each test gives the same verdict every time.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from playground.core.decoding import Decoding
from playground.core.draws import uniform
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.core.stages import ORDERS
from playground.engine.decode import stream
from playground.engine.draw import pick, survive
from playground.engine.model import LoadedModel
from playground.engine.pipeline import build, walk
from tests.engine.reference import choose_from

DRAWS, STEP = 2000, 7
NO_IDS = torch.tensor([], dtype=torch.long)
SETTINGS = {
    "T 0.7, top-p 0.9": Decoding(temperature=0.7, top_p=0.9),
    "T 1.4, unfiltered": Decoding(temperature=1.4, top_p=1.0),
    "top-k 3": Decoding(temperature=1.0, top_k=3, top_p=1.0),
    "min-p 0.1": Decoding(temperature=1.0, top_p=1.0, min_p=0.1),
    "typical-p 0.5": Decoding(temperature=1.0, top_p=1.0, typical_p=0.5),
    "llama.cpp order": Decoding(temperature=1.5, top_p=0.8, min_p=0.05, order=ORDERS["llama.cpp"]),
}


def critical(degrees: int, normal_quantile: float = 3.090) -> float:
    """What chi-square exceeds once in a thousand: Wilson and Hilferty, PNAS 17 (1931), p. 684.

    3.090 is the normal distribution's quantile of 0.999; within 3 % of the tables from 2 degrees on.
    """
    spread = 2 / (9 * degrees)
    return degrees * (1 - spread + normal_quantile * spread**0.5) ** 3


def chi_squared(draws: Sequence[int], expected: torch.Tensor) -> tuple[float, int]:
    """The statistic and its degrees of freedom; what is expected less than five times is one class.

    A draw of what has no probability is infinitely far off.
    """
    counts = torch.bincount(torch.tensor(draws), minlength=len(expected)).double()
    wanted = expected.double() * len(draws)
    if bool((counts[wanted == 0] > 0).any()):
        return float("inf"), 1
    often = wanted >= 5
    seen = torch.cat([counts[often], counts[~often].sum()[None]])
    means = torch.cat([wanted[often], wanted[~often].sum()[None]])
    if means[-1] < 5:
        seen = torch.cat([seen[:-2], seen[-2:].sum()[None]])
        means = torch.cat([means[:-2], means[-2:].sum()[None]])
    return float(((seen - means) ** 2 / means).sum()), len(means) - 1


def fits(draws: Sequence[int], expected: torch.Tensor) -> bool:
    statistic, degrees = chi_squared(draws, expected)
    return statistic < critical(degrees)


def row(size: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(11)) * 2


def processed(raw: torch.Tensor, decoding: Decoding) -> torch.Tensor:
    """The scores after every stage."""
    *_, (_, scores) = walk(raw, NO_IDS, build(decoding, 0))
    return scores


def drawn(raw: torch.Tensor, decoding: Decoding) -> list[int]:
    """One draw a seed, all at the same step."""
    survivors = survive(processed(raw, decoding))
    return [int(pick(survivors, uniform(seed, STEP))) for seed in range(DRAWS)]


@pytest.mark.parametrize(("degrees", "table"), [(2, 13.816), (10, 29.588), (100, 149.449)])
def test_the_critical_value_is_that_of_the_tables(degrees: int, table: float) -> None:
    assert critical(degrees) == pytest.approx(table, rel=0.03)


@pytest.mark.parametrize("size", [400, 6000], ids=["all ranked", "beyond the head"])
@pytest.mark.parametrize("name", SETTINGS)
def test_two_thousand_draws_follow_the_processed_distribution(name: str, size: int) -> None:
    raw = row(size)
    assert fits(drawn(raw, SETTINGS[name]), processed(raw, SETTINGS[name]).softmax(0))


@pytest.mark.parametrize("name", SETTINGS)
def test_another_distribution_does_not_pass(name: str) -> None:
    """The model's own, one a little warmer, and one that lacks a candidate or has one more."""
    raw, decoding = row(400), SETTINGS[name]
    draws, scores = drawn(raw, decoding), processed(raw, decoding)
    without_the_best = scores.clone()
    without_the_best[scores.argmax()] = -torch.inf
    assert not fits(draws, without_the_best.softmax(0))
    assert not fits(draws, (scores / 1.3).softmax(0))
    assert not fits(draws, raw.softmax(0))
    one_too_many = scores.clone()
    one_too_many[scores.argmin()] = scores.max()
    assert not fits(draws, one_too_many.softmax(0))


def test_draws_that_depend_on_each_other_do_not_pass() -> None:
    raw, decoding = row(400), SETTINGS["T 1.4, unfiltered"]
    survivors = survive(processed(raw, decoding))
    few_seeds = [int(pick(survivors, uniform(seed % 200, STEP))) for seed in range(DRAWS)]
    assert not fits(few_seeds, processed(raw, decoding).softmax(0))


def test_the_record_names_the_probability_of_the_draw() -> None:
    raw, decoding = row(400), SETTINGS["T 0.7, top-p 0.9"]
    expected = processed(raw, decoding).double().softmax(0)
    for seed in range(50):
        choice, _ = choose_from(raw, NO_IDS, build(decoding, 0), uniform(seed, STEP), 5)
        assert choice.processed_probability == pytest.approx(float(expected[choice.id]), rel=1e-6)


def run(model: LoadedModel, *lanes: Decoding) -> Run:
    return fold(stream(model, Request("hello world", lanes, chat=False)))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_seed_draws_the_same_with_one_and_with_four_lanes(model: LoadedModel, name: str) -> None:
    decoding = replace(SETTINGS[name], max_new_tokens=24)
    together = run(model, *(replace(decoding, seed=seed) for seed in range(4)))
    for lane, seed in zip(together.lanes, range(4), strict=True):
        alone = run(model, replace(decoding, seed=seed)).lanes[0]
        assert [step.draw for step in lane.steps] == [step.draw for step in alone.steps]
        assert [step.draw for step in lane.steps] == [uniform(seed, i) for i in range(len(lane.steps))]
        assert lane.token_ids == alone.token_ids
    assert len({tuple(lane.token_ids) for lane in together.lanes}) > 1
