"""Loops in an answer: the rule, the shipped trace, and that the page's own arithmetic finds the same."""

import random
from itertools import pairwise

import pytest

from playground.core.loops import LENGTH, Loop, collapse, loops
from playground.core.run import Lane
from playground.core.trace import load_trace
from playground.settings import assets_dir


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ([], ()),
        ([1] * (LENGTH - 1), ()),
        ([1] * LENGTH, (Loop(0, 1, LENGTH),)),
        ([9, *[1, 2, 3, 4] * 3, 5], (Loop(1, 4, 12),)),
        ([9, *[1, 2, 3, 4] * 2, 1, 2, 3, 5], ()),
        ([*range(30), *range(30), *range(30)], (Loop(0, 30, 90),)),
        ([*[1, 2] * 6, 7, 8, *[3, 4, 5, 6] * 4], (Loop(0, 2, 12), Loop(14, 4, 16))),
        (list(range(200)), ()),
        ([*range(65)] * 3, ()),
    ],
)
def test_the_same_tokens_three_times_in_a_row_and_twelve_long(
    ids: list[int], found: tuple[Loop, ...]
) -> None:
    assert loops(ids) == found


def test_what_is_found_does_repeat_and_lies_apart() -> None:
    draws = random.Random(4)
    for _ in range(200):
        ids = [draws.randrange(3) for _ in range(40)]
        found = loops(ids)
        for loop in found:
            repeated = ids[loop.first : loop.first + loop.length]
            assert repeated[loop.period :] == repeated[: -loop.period] and loop.times >= 3
        assert all(a.first + a.length <= b.first for a, b in pairwise(found))


def test_the_shipped_trace_goes_round_and_its_entropy_falls() -> None:
    lane: Lane = load_trace(assets_dir() / "traces" / "loop.jsonl").runs[0].lanes[0]
    (loop,) = loops(lane.token_ids)
    assert loop.period == 8 and loop.first < 20 and loop.times > 5
    before, within = collapse(lane, loop)
    assert before is not None and within < before
