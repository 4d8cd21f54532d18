"""The rows of Compare: presets, duplicates, seeds, and sets that come back from the browser."""

from typing import Any

import pytest

from playground.core.decoding import parse_decoding, spec_parts
from playground.ui import presets
from playground.ui.lanes import LANES, Fields, lane_choices, read_fields, spec_of, with_seed
from playground.ui.saved_lanes import SETS_LIMIT, kept, label, one_more, restored
from playground.ui.text import say

FIELDS = Fields((True, True, False, False), ("greedy", "own", "wild", "own"), ("greedy", "top_k=3", "x", "y"))


@pytest.mark.parametrize("name", list(presets.lanes()))
def test_a_preset_reads_back_from_its_spec(name: str) -> None:
    assert presets.preset_of(spec_of(presets.lanes()[name])) == name


def test_presets_are_named_by_their_settings() -> None:
    titles = [title for title, _ in lane_choices(lambda key: say("en", key))]
    assert titles == [
        "Greedy", "Balanced: T 0.7, top-p 0.9", "Creative: T 1, min-p 0.05", "Wild: T 1.4",
        "llama.cpp defaults: T 0.8, top-k 40, top-p 0.95, min-p 0.05", "Model's own", "Own settings",
    ]  # fmt: skip


def test_a_row_is_duplicated_into_the_first_free_one() -> None:
    after = FIELDS.duplicated(1)
    assert after.shown == (True, True, True, False)
    assert (after.names[2], after.specs[2]) == ("own", "top_k=3")
    full = after.duplicated(0)
    assert full.shown == (True,) * 4 and full.duplicated(0) == full


def test_seeds_are_the_same_or_each_its_own() -> None:
    fields = Fields((True,) * 4, ("own",) * 4, ("greedy", "top_k=3", "seed=9,top_p=1", 'stop="a,seed=1"'))
    assert fields.seeded(same=True).specs == (
        "greedy", "top_k=3,seed=5", "top_p=1,seed=5", 'stop="a,seed=1",seed=5',
    )  # fmt: skip
    assert [parse_decoding(spec).seed for spec in fields.seeded(same=False).specs[1:]] == [6, 7, 8]
    assert with_seed("temperature=0, seed=3", 1) == "temperature=0"
    assert spec_parts(' a=1 ,, b="x,y"') == ["a=1", 'b="x,y"']


def test_what_the_page_sends_is_cut_to_what_it_may_be() -> None:
    fields = read_fields("no list", ["greedy", 3, "<b>", None], [None, "x" * 10**6, "a", 7])
    assert fields.shown == (True,) * len(LANES) and fields.names == ("greedy", "own", "own", "own")
    assert fields.specs[0] == "" and len(fields.specs[1]) == 40_000


def test_sets_are_kept_once_newest_first_and_bounded() -> None:
    sets: list[list[str]] = []
    for k in range(SETS_LIMIT + 3):
        sets = one_more(sets, Fields(FIELDS.shown, FIELDS.names, ("greedy", f"top_k={k + 1}", "", "")))
    assert len(sets) == SETS_LIMIT and sets[0] == ["greedy", "top_k=15"]
    assert one_more(sets, FIELDS)[0] == ["greedy", "top_k=3"] and len(one_more(sets, FIELDS)) == SETS_LIMIT
    assert one_more(sets, Fields(FIELDS.shown, FIELDS.names, ("greedy", "nonsense=1", "", ""))) == sets
    back = restored(sets[0])
    assert back.shown == (True, True, False, False) and back.names[:2] == ("greedy", "own")
    assert label(sets[0]) == "greedy | T 0.7, top-k 15, top-p 0.9"


@pytest.mark.parametrize(
    "store", [None, 7, "x", [["greedy"]], [["greedy", 3]], [["greedy", "x=1"]], [[["a"]]]]
)
def test_a_store_that_is_none_of_ours_is_left_out(store: Any) -> None:
    assert kept(store) == []
