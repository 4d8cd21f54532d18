"""The counts of a race against counting one by one, and the result of races that end in every way."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.core.decoding import GREEDY, InvalidSetting
from playground.core.events import Finished, FinishReason, Prefilled, Started, Stepped
from playground.core.race import WITH, WITHOUT, Race, Ticked, Work, follow, race_report, result, work
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Token

FACTS = ModelFacts("tests/none", None, "cpu", "float32", 100, 1000)


def counted(prompt_tokens: int, new_tokens: int, cached: bool) -> Work:
    """Every key made and every product taken, one by one; `known` is what a cache holds."""
    keys, products, known = 0, 0, 0
    met: set[tuple[int, int]] = set()
    for positions in range(prompt_tokens, prompt_tokens + new_tokens):
        for query in range(known if cached else 0, positions):
            keys += 1
            for key in range(query + 1):
                products += 1
                met.add((query, key))
        known = positions
    return Work(keys, len(met), products)


@given(st.integers(1, 12), st.integers(0, 12), st.booleans())
def test_the_formulas_count_what_a_loop_counts(prompt_tokens: int, new_tokens: int, cached: bool) -> None:
    assert work(prompt_tokens, new_tokens, cached=cached) == counted(prompt_tokens, new_tokens, cached)


def test_the_articles_figures() -> None:
    cached, uncached = work(1, 1000, cached=True), work(1, 1000, cached=False)
    assert (uncached.kv_computed, cached.kv_computed) == (500_500, 1_000)
    assert cached.attention_dot_products_needed == uncached.attention_dot_products_needed == 500_500
    assert cached.attention_dot_products_computed == 500_500
    assert uncached.attention_dot_products_computed == 167_167_000


@pytest.mark.parametrize(
    ("prompt", "new"),
    [(0, 1), (-3, 1), (1, -1), (1.5, 2), (1, 2.0), (True, 2), ("1", 2), (None, 1), (1, 10**9 + 1)],
)
def test_counts_that_cannot_be(prompt: Any, new: Any) -> None:
    with pytest.raises(
        InvalidSetting, match="from one prompt token and from no new token upwards"
    ) as refused:
        work(prompt, new, cached=True)
    assert str(refused.value).endswith(".")


def raced(
    with_it: list[int], without: list[int], reason: FinishReason | None = "max_new_tokens", prompt: int = 3
) -> Race:
    """A race whose sides chose these ids, each step of logits 0.5 apart."""
    race, parted = Race(), False
    for ending, ids in ((WITH, with_it), (WITHOUT, without)):
        run, tokens = f"r{ending}", tuple(Token(i, "a") for i in range(prompt))
        follow(race, Started(run, Request("a", (GREEDY,), run=run), FACTS, tokens))
        follow(race, Prefilled(run, prompt, 0, 0.0, 0.5, prompt, None, None))
        for step, id in enumerate(ids):
            follow(race, _stepped(run, step, id))
        if reason is not None:
            follow(race, Finished(run, 0, reason, "", 9.0))
    for step, (a, b) in enumerate(zip(with_it, without, strict=False)):
        follow(race, Ticked(step, None, None) if parted else Ticked(step, a == b, 0.5 + step))
        parted = parted or a != b
    return race


def _stepped(run: str, step: int, id: int) -> Stepped:
    return Stepped(
        run, 0, step, 3 + step, Token(id, "x"), "x", 1, -0.5, 1.0, None, "argmax", (), 0.0, 1.0, 0.0, 1, 1.0, (),
        0.5 + step, 0.75 + step, 0, 0, 0, 3 + step, 0,
    )  # fmt: skip


def test_a_race_of_equals() -> None:
    found = result(raced([5, 6, 7], [5, 6, 7]))
    assert (found.tokens_equal, found.first_divergence, found.max_logit_difference) == (True, None, 2.5)
    assert found.cached == work(3, 3, cached=True)
    assert found.uncached == work(3, 3, cached=False)


def test_after_a_divergence_nothing_is_compared() -> None:
    """Case 33: the report names the first divergence, and equality is ticked for each token."""
    race = raced([5, 6, 7, 8], [5, 9, 7, 8])
    report = race_report(race)
    assert (report["tokens_equal"], report["first_divergence"]) == (False, 1)
    assert report["ticks"] == [True, False, None, None]
    assert report["logit_differences"] == [0.5, 1.5, None, None]
    assert report["max_logit_difference"] == 1.5
    assert report["compared_steps"] == 2


def test_a_side_that_only_ends_earlier_has_parted_there() -> None:
    assert result(raced([5, 6, 7], [5, 6])).first_divergence == 2


@pytest.mark.parametrize("reason", ["cancelled", None])
def test_a_stopped_race_claims_no_more_than_was_ticked(reason: FinishReason | None) -> None:
    found = result(raced([5, 6, 7], [5, 6], reason))
    assert (found.tokens_equal, found.first_divergence, found.compared_steps) == (True, None, 2)
    assert found.uncached == work(3, 2, cached=False)


def test_a_race_that_has_not_begun_is_a_report_too() -> None:
    report = race_report(Race())
    assert report["tokens_equal"] is None
    assert report["cached"]["step_seconds"] == report["uncached"]["step_seconds"] == []


def test_the_keys_of_the_command() -> None:
    report = race_report(raced([5, 6, 7], [5, 6, 7]))
    assert json.loads(json.dumps(report, allow_nan=False)).keys() == report.keys()
    assert {"cached", "uncached", "tokens_equal", "first_divergence", "max_logit_difference"} <= set(report)
    for side in ("cached", "uncached"):
        assert {
            "step_seconds", "kv_computed", "attention_dot_products_needed", "attention_dot_products_computed",
        } <= set(report[side])  # fmt: skip
        assert report[side]["step_seconds"] == [0.25, 0.25]  # without the first token's choice
    assert report["unit"].startswith("one head of one layer")
