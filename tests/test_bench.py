"""The arithmetic of the benchmark, and that it runs at all; its figures are never asserted."""

import json

import pytest

from playground.bench import Result, main, summary
from playground.bench.contenders import CONTENDERS, SETTINGS


def test_ratios_are_taken_within_a_round_and_medians_over_rounds() -> None:
    rates = [
        {"a": 10.0, "b": 20.0, "c": 60.0},
        {"a": 20.0, "b": 30.0, "c": 60.0},
        {"a": 5.0, "b": 15.0, "c": 75.0},
    ]
    against = {"a": ("a",), "b": ("a",), "c": ("b", "a")}
    assert summary(against, "greedy", rates) == [
        Result("a, greedy", 10.0, 1.0, 1.0, 1.0, 3, "a"),
        Result("b, greedy", 20.0, 2.0, 1.5, 3.0, 3, "a"),
        Result("c, greedy", 60.0, 3.0, 2.0, 5.0, 3, "b"),
        Result("c, greedy", 60.0, 6.0, 3.0, 15.0, 3, "a"),
    ]


@pytest.mark.model
@pytest.mark.slow
def test_the_suite_runs_and_its_last_line_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(rounds=1, tokens=2)
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    names = [
        (f"{way}, {settings}", other)
        for settings in SETTINGS for way, contender in CONTENDERS.items() for other in contender.against
    ]  # fmt: skip
    assert [(row["name"], row["against"]) for row in answer["results"]] == names
    assert all(row["tokens_per_second"] > 0 and row["n"] == 1 for row in answer["results"])
    assert answer["machine"] and answer["dtype"]
