"""The default model, really: equal to `generate`, and its cache to the byte."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from playground.core.decoding import GREEDY, Decoding
from playground.core.report import kv_cache
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.decode import stream
from playground.engine.load import load_model
from playground.engine.model import LoadedModel
from tests.engine.reference import processed_probabilities

pytestmark = pytest.mark.model

CAPITAL = "The capital of France is"


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load_model(device="cpu")


@pytest.fixture(scope="module")
def half() -> Iterator[LoadedModel]:
    yield load_model(device="cpu", dtype="bfloat16")


def generated(model: LoadedModel, prompt_ids: list[int], tokens: int) -> list[int]:
    """What transformers' own `generate` answers greedily."""
    prompt = torch.tensor([prompt_ids])
    output = model.module.generate(
        prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=tokens,
        pad_token_id=0,
    )  # fmt: skip
    return list(output[0, len(prompt_ids) :].tolist())


def test_a_dtype_that_works_and_is_fast_here_is_chosen_and_shown(model: LoadedModel) -> None:
    """Case 28."""
    assert model.facts.device == "cpu" and model.facts.dtype == "float32"
    assert model.module.dtype == torch.float32


def test_the_command_gives_exactly_the_ids_of_generate(model: LoadedModel) -> None:
    command = [
        sys.executable, "-m", "playground", "generate", CAPITAL, "--raw", "--strategy", "greedy",
        "--dtype", "float32", "--device", "cpu", "--max-new-tokens", "32", "--json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["prompt_token_ids"] == model.tokenizer(CAPITAL)["input_ids"]
    assert answer["token_ids"] == generated(model, answer["prompt_token_ids"], 32)
    assert answer["text"] == model.tokenizer.decode(answer["token_ids"], skip_special_tokens=True)
    kv = answer["kv_cache"]
    assert kv["tokens"] == len(answer["prompt_token_ids"]) + len(answer["token_ids"]) - 1
    assert kv["used_bytes"] == kv["predicted_bytes"] == kv["tokens"] * 46_080


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(temperature=0.9, top_k=40, top_p=0.9, seed=11, max_new_tokens=16),
        Decoding(temperature=1.4, top_p=1.0, seed=5, max_new_tokens=16),
        Decoding(temperature=0.7, top_p=0.95, min_p=0.05, repetition_penalty=1.1, seed=2, max_new_tokens=16),
    ],
)
def test_processed_probabilities_equal_the_scores_of_generate(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch, decoding: Decoding
) -> None:
    run = fold(stream(model, Request("Write one sentence about the sea.", (decoding,), top_n=200)))
    lane = run.lanes[0]
    theirs = processed_probabilities(model.module, run.prompt_ids, lane.token_ids, decoding, monkeypatch)
    for step, row in zip(lane.steps, theirs, strict=True):
        for candidate in step.candidates:
            assert candidate.processed_probability == pytest.approx(float(row[candidate.token.id]), abs=1e-5)


def test_four_lanes_together_are_four_alone(model: LoadedModel) -> None:
    lanes = (GREEDY, *(Decoding(temperature=0.8, top_p=0.9, seed=seed) for seed in (1, 2, 3)))
    lanes = tuple(replace(lane, max_new_tokens=32) for lane in lanes)
    prompt = "Write one sentence about the sea."
    together = fold(stream(model, Request(prompt, lanes)))
    for lane, decoding in zip(together.lanes, lanes, strict=True):
        assert lane.token_ids == fold(stream(model, Request(prompt, (decoding,)))).lanes[0].token_ids


def test_sixteen_bit_halves_the_cache(half: LoadedModel) -> None:
    run = fold(stream(half, Request("What is gravity?", (replace(GREEDY, max_new_tokens=8),))))
    kv = kv_cache(run, run.lanes[0])
    assert kv["used_bytes"] == kv["predicted_bytes"] == kv["tokens"] * 23_040
    assert kv["dtype"] == "bfloat16"


def test_the_articles_prompts(model: LoadedModel) -> None:
    """ "What is gravity?" is four tokens, and the loop preset's greedy answer begins " Gravity is"."""
    assert len(model.tokenizer("What is gravity?")["input_ids"]) == 4
    from playground.ui.presets import prompts

    loop = next(preset for preset in prompts() if preset.name == "loop")
    run = fold(stream(model, Request(loop.text, (replace(GREEDY, max_new_tokens=4),), chat=False)))
    assert run.lanes[0].text.startswith(" Gravity is")
