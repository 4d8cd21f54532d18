"""`score`, `race` and `compare` around a tiny model: tables, sentences, JSON, Ctrl-C, the trace."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from playground.backends.local import LocalBackend
from playground.cli import compare as compare_module
from playground.cli import generate as generate_module
from playground.cli import race as race_module
from playground.cli import run as run_command
from playground.cli import score as score_module
from playground.core.race import Item, Ticked
from playground.core.trace import load_trace
from tests.engine.conftest import byte_level_tokenizer, loaded, tiny_module


@dataclass
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out.splitlines()[-1])


@pytest.fixture(scope="module")
def backend() -> LocalBackend:
    tokenizer = byte_level_tokenizer()
    model = loaded(tiny_module(len(tokenizer)), tokenizer)
    model.stop_ids = frozenset()
    return LocalBackend(model)


@pytest.fixture
def first_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, backend: LocalBackend
) -> Callable[..., Answer]:
    for module in (score_module, compare_module, generate_module):
        monkeypatch.setattr(module, "chosen_backend", lambda *_, **__: backend)
    monkeypatch.setattr(race_module, "local_backend", lambda *_: backend)

    def run(*arguments: object) -> Answer:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        return Answer(code, *capsys.readouterr())

    return run


def test_score_says_probability_and_rank(first_token: Callable[..., Answer]) -> None:
    """Case 18, in the terminal."""
    answer = first_token("score", "hello", "--raw", "--text", " fox")
    assert answer.code == 0
    header, row = answer.out.splitlines()
    assert header.split()[:4] == ["id", "text", "probability", "rank"]
    assert "·fox" in row and " %" in row and " bits" in row
    assert answer.err.startswith("1 token, ") and "; it has rank " in answer.err


def test_score_json(first_token: Callable[..., Answer]) -> None:
    """Case 18: several tokens, the product along the path."""
    answer = first_token("score", "hello", "--raw", "--text", " gravity of cats", "--top", 3, "--json")
    report = answer.json
    assert answer.out.count("\n") == 1
    assert {"id", "rank", "logprob"} <= report["tokens"][0].keys()
    assert len(report["tokens"]) > 1
    assert report["logprob"] == pytest.approx(sum(token["logprob"] for token in report["tokens"]))
    assert [len(token["expected"]) for token in report["tokens"]] == [3] * len(report["tokens"])
    assert bytes.fromhex("".join(token["bytes"] for token in report["tokens"])) == b" gravity of cats"


def test_score_of_the_prompt_itself(first_token: Callable[..., Answer]) -> None:
    report = first_token("score", "hello world", "--raw", "--json").json
    assert report["tokens"][0]["rank"] is None
    assert all(token["rank"] >= 1 for token in report["tokens"][1:])
    assert report["text"] is None
    table = first_token("score", "hello world", "--raw")
    assert "nothing comes before it" in table.out and "of the prompt" in table.err


@pytest.mark.parametrize(
    "arguments",
    [["score", "hello", "--text", ""], ["score", "", "--text", "a"], ["score", "hello", "--text", "a", "--top", 99],
     ["race", ""], ["race", "a", "--max-new-tokens", 0], ["race", "a", "--max-new-tokens", 5000],
     ["race", "a", "--trace", "nowhere/at/all.jsonl"]],
)  # fmt: skip
def test_a_refusal_is_one_sentence_and_2(first_token: Callable[..., Answer], arguments: list[str]) -> None:
    answer = first_token(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_race_ticks_each_token_and_says_what_was_saved(first_token: Callable[..., Answer]) -> None:
    answer = first_token("race", "hello", "--raw", "--max-new-tokens", 6)
    assert answer.code == 0
    assert answer.out.count("✓") == 6 and answer.out.count(" ms") == 10
    assert "All 6 tokens are the same" in answer.err
    assert "with the KV cache and" in answer.err
    prompt = 1  # "hello" is one token
    assert f"Keys and values computed: {prompt + 5} with the cache, 21 without" in answer.err
    assert "dot products: 21 and 56, where 21 are needed" in answer.err


def test_race_json_and_trace(first_token: Callable[..., Answer], tmp_path: Path) -> None:
    answer = first_token(
        "race", "hello", "--raw", "--max-new-tokens", 6, "--json", "--trace", tmp_path / "r.jsonl"
    )
    report = answer.json
    assert answer.out.count("\n") == 1
    assert set(report["cached"]) == set(report["uncached"]) >= {
        "step_seconds", "kv_computed", "attention_dot_products_needed", "attention_dot_products_computed",
    }  # fmt: skip
    assert (report["tokens_equal"], report["first_divergence"]) == (True, None)
    assert report["max_logit_difference"] >= 0
    assert len(report["cached"]["step_seconds"]) == 5
    runs = load_trace(tmp_path / "r.jsonl").runs
    assert [run.lanes[0].token_ids for run in runs] == [report["cached"]["token_ids"]] * 2


@pytest.mark.parametrize("as_json", [True, False])
def test_ctrl_c_ends_a_race_and_reports_what_is_there(
    first_token: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch, backend: LocalBackend, as_json: bool
) -> None:
    race = backend.race

    def interrupted(*asked: Any) -> Iterator[Item]:
        for item in race(*asked):
            yield item
            if isinstance(item, Ticked) and item.step == 4:
                os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(backend, "race", interrupted)
    answer = first_token("race", "hello", "--max-new-tokens", 900, *(["--json"] if as_json else []))
    assert answer.code == 0
    assert "All 5 tokens are the same" in answer.err
    if as_json:
        sides = (answer.json["cached"], answer.json["uncached"])
        assert [side["finish_reason"] for side in sides] == ["cancelled"] * 2
        assert answer.json["ticks"] == [True] * 5
    else:
        assert answer.out.count("✓") == 5


def test_compare_has_the_keys_of_the_interface_and_each_lane_is_as_generate_gives_it(
    first_token: Callable[..., Answer],
) -> None:
    warm = {"temperature": 0.9, "top-p": 0.95, "seed": 3}
    spec = ",".join(f"{name}={value}" for name, value in warm.items())
    report = first_token(
        "compare", "hello", "--lane", "greedy", "--lane", spec, "--max-new-tokens", 12, "--json"
    ).json
    assert {"lanes", "first_divergence", "prefill", "timing"} <= report.keys()
    options = [part for name, value in warm.items() for part in (f"--{name}", value)]
    alone = [
        first_token("generate", "hello", "--max-new-tokens", 12, *more, "--json").json
        for more in ([], options)
    ]
    for lane, one, written in zip(report["lanes"], alone, ["greedy", spec], strict=True):
        assert lane.keys() >= one.keys()
        assert (lane["spec"], lane["token_ids"], lane["text"]) == (written, one["token_ids"], one["text"])
        assert lane["prompt_token_ids"] == one["prompt_token_ids"]
        for step, single in zip(lane["steps"], one["steps"], strict=True):
            assert step["raw_rank"] == single["raw_rank"] and step["draw"] == single["draw"]
            assert step["raw_logprob"] == pytest.approx(single["raw_logprob"], abs=5e-5)
    ids = [lane["token_ids"] for lane in report["lanes"]]
    assert report["first_divergence"] == [a == b for a, b in zip(*ids, strict=True)].index(False)
    assert report["prefill"]["tokens_computed"] == len(report["lanes"][0]["prompt_token_ids"])
    assert report["timing"]["step_seconds"]
