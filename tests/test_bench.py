"""The arithmetic of the benchmark, and that it runs at all; its figures are never asserted."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from playground.bench import Result, main, measure, summary
from playground.bench.contenders import Contender, Task, Timed
from playground.bench.llamacpp import DIRECT, THROUGH
from playground.bench.sections import (
    CEILING,
    IN_8_BIT,
    OWN,
    PEERS,
    PLAIN,
    SECTIONS,
    STREAMED,
    Section,
    growth,
)
from playground.cli import app
from playground.cli.bench import NAMES
from playground.cli.bench import PEERS as KNOWN
from playground.core.decoding import GREEDY, InvalidSetting
from playground.engine.model import LoadedModel
from tests.engine.families import tiny


def taking(seconds: float) -> Any:
    return lambda model, task: Timed(1, seconds)


def test_ratios_are_taken_within_a_round_and_medians_over_rounds() -> None:
    ways = {
        name: Contender(taking(1), against=against) for name, against in (("a", ("a",)), ("c", ("b", "a")))
    }
    section = Section("greedy", Task((1,), GREEDY, 1), ways)
    rates = [
        {"a": 10.0, "b": 20.0, "c": 60.0},
        {"a": 20.0, "b": 30.0, "c": 60.0},
        {"a": 5.0, "b": 15.0, "c": 75.0},
    ]
    assert summary(section, rates) == [
        Result("a, greedy", 10.0, 1.0, 1.0, 1.0, 3, "a"),
        Result("c, greedy", 60.0, 3.0, 2.0, 5.0, 3, "b"),
        Result("c, greedy", 60.0, 6.0, 3.0, 15.0, 3, "a"),
    ]


def test_a_way_may_say_its_own_time_and_every_round_begins_with_another() -> None:
    order: list[str] = []

    def way(name: str, seconds: float) -> Contender:
        return Contender(lambda model, task: order.append(name) or Timed(3, seconds))  # type: ignore[func-returns-value]

    section = Section("greedy", Task((1,), GREEDY, 1), {"a": way("a", 1.5), "b": way("b", 3.0)})
    assert measure(section, tiny("llama"), 2) == [{"a": 2.0, "b": 1.0}] * 2
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_a_grown_text_is_read_once_and_gone_on_from() -> None:
    model: LoadedModel = tiny("llama")
    (section,) = [one for one in growth(model, 2) if one.name == "after 128 tokens"]
    read = []
    module, forward = model.module, model.module.forward
    module.forward = lambda *args, **named: (
        read.append(named["input_ids"].shape[1]) or forward(*args, **named)
    )
    try:
        measure(section, model, 1)
    finally:
        del module.forward
    assert sorted(n for n in read if n > 1) == [127, 128]


def test_the_command_knows_the_sections() -> None:
    assert list(SECTIONS) == list(NAMES)
    assert set(PEERS) == set(KNOWN) and sorted(name for names in PEERS.values() for name in names) == sorted(
        NAMES
    )


@pytest.mark.parametrize(
    "options", [["--against", "ollama"], ["--section", "all"], ["--random-init", "gpt2", "--model", "x"]]
)
def test_what_it_does_not_know_is_refused_before_anything_is_loaded(options: list[str]) -> None:
    answer = CliRunner().invoke(app, ["bench", *options])
    assert answer.exit_code != 0 and isinstance(answer.exception, InvalidSetting)


@pytest.mark.model
@pytest.mark.slow
def test_the_suite_runs_and_its_last_line_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    main(rounds=1, tokens=2, sections=("decode", "int8", "llamacpp"))
    answer = json.loads(capsys.readouterr().out.splitlines()[-1])
    rows = {(row["name"], row["against"]) for row in answer["results"]}
    assert {
        (f"{OWN}, {setting}", other) for setting in ("greedy", "sampled") for other in (PLAIN, CEILING)
    } | {(f"{THROUGH}, greedy", other) for other in (STREAMED, DIRECT)} | {
        (f"{IN_8_BIT}, greedy", OWN)
    } <= rows
    assert all(row["tokens_per_second"] > 0 and row["n"] == 1 for row in answer["results"])
    assert answer["machine"] and answer["dtype"]
