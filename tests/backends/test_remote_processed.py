"""From a server's few candidates to the probabilities after settings: equal to the whole vocabulary's where
it is said to be, within the bounds where not."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.backends.remote.processed import processed
from playground.core.decoding import GREEDY, Decoding

SEEN = 8
VOCABULARY = 40


def reference(probabilities: list[float], decoding: Decoding) -> list[float]:
    """Every stage on the whole vocabulary, most probable first."""
    weights = list(probabilities)
    for stage in decoding.active_stages():
        total, best = sum(weights), max(weights)
        if stage == "temperature":
            weights = [(w / best) ** (1 / decoding.temperature) for w in weights]
        elif stage == "top_k":
            weights = [w if i < decoding.top_k else 0.0 for i, w in enumerate(weights)]
        elif stage == "min_p":
            weights = [w if w >= decoding.min_p * best else 0.0 for w in weights]
        elif stage == "top_p":
            kept, so_far = [], 0.0
            for w in weights:
                kept.append(w if so_far < decoding.top_p * total else 0.0)
                so_far += w
            weights = kept
    total = sum(weights)
    return [w / total for w in weights]


@st.composite
def distributions(draw: st.DrawFn) -> list[float]:
    logits = draw(st.lists(st.floats(0, 12), min_size=VOCABULARY, max_size=VOCABULARY, unique=True))
    weights = sorted((math.exp(x) for x in logits), reverse=True)
    return [w / sum(weights) for w in weights]


SETTINGS = st.builds(
    Decoding,
    temperature=st.sampled_from((0.3, 0.7, 1.0, 1.6)),
    top_k=st.sampled_from((0, 3, SEEN, 20)),
    top_p=st.sampled_from((0.5, 0.9, 1.0)),
    min_p=st.sampled_from((0.0, 0.05, 0.3)),
    order=st.sampled_from(
        (Decoding().order, ("repetition_penalty", "top_k", "typical_p", "top_p", "min_p", "temperature"))
    ),
)


@given(distributions(), SETTINGS)
def test_what_is_called_exact_is_that_of_the_whole_vocabulary(whole: list[float], decoding: Decoding) -> None:
    exact = reference(whole, decoding)
    found = processed([math.log(p) for p in whole[:SEEN]], 0, VOCABULARY, decoding)
    if "processed_probability" in found.inexact:
        return
    assert found.probabilities == pytest.approx(exact[:SEEN], abs=2e-3)
    assert found.kept_count == sum(p > 0 for p in exact)
    assert [by is None for by in found.removed_by] == [p > 0 for p in exact[:SEEN]]


@given(distributions())
def test_the_entropy_is_never_above_the_true_one(whole: list[float]) -> None:
    true = -sum(p * math.log2(p) for p in whole)
    found = processed([math.log(p) for p in whole[:SEEN]], 0, VOCABULARY, Decoding(temperature=1, top_p=1))
    assert found.raw_entropy_bits <= true + 1e-9
    known = -sum(p * math.log2(p) for p in whole[:SEEN])
    assert found.raw_entropy_bits >= known - 1e-9
    assert ("raw_entropy_bits" in found.inexact) == (sum(whole[SEEN:]) >= 1e-6)


def test_common_settings_are_exact_and_a_flat_tail_is_not() -> None:
    peaked = [math.log(p) for p in (0.6, 0.25, 0.1, 0.02)]
    assert "processed_probability" not in processed(peaked, 0, 50_000, Decoding()).inexact
    flat = [math.log(0.02)] * 4
    found = processed(flat, 0, 50_000, Decoding())
    assert {"processed_probability", "kept_count", "kept_mass"} <= set(found.inexact)


def test_greedy_keeps_one_and_a_penalty_is_approximate() -> None:
    logs = [math.log(p) for p in (0.6, 0.25)]
    found = processed(logs, 1, 10, GREEDY)
    assert found.probabilities == (0.0, 1.0) and found.removed_by == ("greedy", None)
    for decoding in (replace(GREEDY, repetition_penalty=1.2), Decoding(repetition_penalty=1.2)):
        assert "processed_probability" in processed(logs, 0, 10, decoding).inexact


def test_a_choice_outside_our_own_arithmetic_is_kept_and_marked() -> None:
    logs = [math.log(p) for p in (0.9, 0.05, 0.02)]
    found = processed(logs, 2, 100, Decoding(top_k=1))
    assert found.probabilities[2] > 0 and "processed_probability" in found.inexact


def test_an_unknown_vocabulary_is_not_counted() -> None:
    found = processed([math.log(0.5), math.log(0.2)], 0, 0, Decoding(temperature=1, top_p=1))
    assert found.kept_count == 2 and "kept_count" in found.inexact
