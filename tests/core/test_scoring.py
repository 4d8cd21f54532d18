"""Scored tokens as values: the product along the path, and what is unknown or impossible."""

import json
import math

import pytest

from playground.core.request import ModelFacts
from playground.core.scoring import Expected, Scored, Scoring, mean_surprisal_bits, scoring_report
from playground.core.tokens import Token

FACTS = ModelFacts("tests/none", None, "cpu", "float32", 100, 1000)


def scored(probability: float, rank: int = 1, id: int = 7) -> Scored:
    logprob = math.log(probability) if probability else -math.inf
    return Scored(
        3, Token(id, "x", "78"), rank, logprob, 1.5, (Expected(Token(1, "y", "79"), math.log(0.5)),)
    )


def scoring(*tokens: Scored) -> Scoring:
    return Scoring(FACTS, tokens, "x" * len(tokens), 3, 0.1)


def test_the_path_is_the_product() -> None:
    both = scoring(scored(0.5), scored(0.125))
    assert both.logprob == pytest.approx(math.log(1 / 16))
    assert both.probability == pytest.approx(1 / 16)
    assert both.surprisal_bits == pytest.approx(4)
    assert mean_surprisal_bits(both.tokens) == pytest.approx(2)


def test_the_keys_of_the_command() -> None:
    report = scoring_report(scoring(scored(0.25, rank=3)))
    (token,) = report["tokens"]
    assert {"tokens", "logprob"} <= set(report)
    assert (token["id"], token["rank"], token["logprob"]) == (7, 3, math.log(0.25))
    assert token["probability"] == pytest.approx(0.25)
    assert token["surprisal_bits"] == pytest.approx(2)
    assert [(one["id"], one["probability"]) for one in token["expected"]] == [(1, pytest.approx(0.5))]


def test_nothing_is_known_of_a_first_token_and_an_impossible_one_is_strict_json() -> None:
    first = Scored(0, Token(5, "a", "61"))
    found = scoring(first, scored(0.5), scored(0.0, rank=90))
    report = scoring_report(found)
    assert json.loads(json.dumps(report, allow_nan=False)).keys() == report.keys()
    assert [token["rank"] for token in report["tokens"]] == [None, 1, 90]
    assert [token["probability"] for token in report["tokens"]] == [None, pytest.approx(0.5), 0.0]
    assert [token["logprob"] for token in report["tokens"]] == [None, math.log(0.5), None]
    assert (report["logprob"], report["probability"]) == (None, 0.0)


def test_a_long_path_underflows_to_zero_and_keeps_its_logarithm() -> None:
    long = scoring(*[scored(1e-5)] * 100)
    assert long.probability == 0.0
    assert long.logprob == pytest.approx(100 * math.log(1e-5))
    assert mean_surprisal_bits([]) is None
