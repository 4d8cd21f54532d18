"""Many draws as a tree: shared beginnings merged, counts and probabilities kept, the most drawn first."""

import json
from dataclasses import replace
from typing import Any

import pytest

from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.draws import SEED_LIMIT
from playground.core.run import Lane
from playground.core.tokens import Token
from playground.core.tree import Branch, as_json, many_draws, same_settings, tree
from tests.browser.stage_events import finished, step

SAMPLE = Decoding(seed=5)
SHARES = {"a": 0.5, "b": 0.8, "c": 0.2, "d": 0.25, "e": 1.0, "f": 1.0}


def drawn(*texts: str, done: bool = True) -> list[Lane]:
    """Lanes that took these letters, each letter with the probability above."""
    lanes = []
    for index, text in enumerate(texts):
        lane = Lane(index, replace(SAMPLE, seed=5 + index))
        lane.steps = [
            step(i, Token(ord(letter), letter), lane=index, processed_probability=SHARES[letter])
            for i, letter in enumerate(text)
        ]
        lane.finished = finished(text, lane=index) if done else None
        lanes.append(lane)
    return lanes


def leaves(branch: Branch, before: str = "") -> list[tuple[str, int]]:
    """Each different continuation, in order, and how many draws end so."""
    text = before + branch.text
    found = [(text, branch.tips)] if branch.tips else []
    return found + [leaf for child in branch.children for leaf in leaves(child, text)]


def test_shared_beginnings_are_one_branch_and_the_most_drawn_come_first() -> None:
    root = tree(drawn("abe", "ace", "abf", "abe", "d"))
    assert (root.text, root.count, root.tips, root.endings) == ("", 5, 0, 4)
    a, d = root.children
    assert (a.text, a.count, a.probability, a.first, a.end) == ("a", 4, 0.5, 0, 1)
    assert (d.text, d.count, d.tips, d.lanes) == ("d", 1, 1, (4,))
    b, c = a.children
    assert (b.text, b.count, b.probability) == ("b", 3, pytest.approx(0.4))
    assert [(leaf.text, leaf.count) for leaf in b.children] == [("e", 2), ("f", 1)]
    assert (c.text, c.token_ids, c.whole_probability) == ("ce", (ord("c"), ord("e")), pytest.approx(0.1))
    assert leaves(root) == [
        ("abe", 2),
        ("abf", 1),
        ("ace", 1),
        ("d", 1),
    ]
    assert sum(count for _, count in leaves(root)) == 5


def test_a_draw_that_stops_where_others_go_on_is_an_ending_of_its_own() -> None:
    root = tree(drawn("ab", "abe", "abe"))
    assert (root.text, root.tips, root.endings, root.count) == ("ab", 1, 2, 3)
    assert root.probability == 0.5 and root.whole_probability == pytest.approx(0.4)
    assert [child.text for child in root.children] == ["e"]


def test_a_tree_can_be_taken_at_any_moment_of_the_run() -> None:
    assert tree(drawn("", "", done=False)).tips == 2
    early = tree(drawn("a", "a", done=False))
    assert (early.text, early.count, early.tips, early.children) == ("a", 2, 2, ())
    alone = tree(drawn("abe"))
    assert (alone.text, alone.tips, alone.endings) == ("abe", 1, 1)


def test_64_long_draws_are_within_reach_of_json() -> None:
    texts = ["a" * k + "b" + "c" * 200 for k in range(64)]
    root = tree(drawn(*texts))
    data = json.loads(json.dumps(as_json(root, 64)))
    assert data["share"] == 1 and root.endings == 64
    assert {text for text, _ in leaves(root)} == set(texts)
    assert data["children"][0]["count"] + data["children"][1]["count"] == 64


def test_draws_are_one_lane_with_seeds_in_a_row() -> None:
    lanes = many_draws(Decoding(temperature=0.9, seed=7), 8)
    assert [lane.seed for lane in lanes] == list(range(7, 15)) and {lane.temperature for lane in lanes} == {
        0.9
    }
    free = many_draws(Decoding(), 3)
    assert free[0].seed is not None and [lane.seed - free[0].seed for lane in free if lane.seed] == [0, 1, 2]
    assert same_settings([Lane(i, lane) for i, lane in enumerate(lanes)])
    assert not same_settings([Lane(0, lanes[0]), Lane(1, replace(lanes[1], top_k=3))])
    assert not same_settings([Lane(0, GREEDY), Lane(1, GREEDY)])


@pytest.mark.parametrize(
    ("decoding", "count", "said"),
    [
        (GREEDY, 8, "no draw"),
        (Decoding(temperature=0), 8, "no draw"),
        (Decoding(), 65, "from 2 to 64"),
        (Decoding(), 1, "from 2 to 64"),
        (Decoding(), True, "from 2 to 64"),
        (Decoding(seed=SEED_LIMIT - 4), 8, "smaller seed"),
        (Decoding(top_p=3), 8, "top_p"),
    ],
)
def test_what_cannot_be_drawn_is_said_in_one_sentence(decoding: Any, count: Any, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said) as refused:
        many_draws(decoding, count)
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)
