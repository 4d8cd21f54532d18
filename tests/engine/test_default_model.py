"""The default model as people get it: the command's answer, its dtype, its cache to the byte.

That it equals `generate`, alone and in lanes, is in test_families.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch

from playground.core.decoding import GREEDY
from playground.core.report import kv_cache
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.decode import stream
from playground.engine.load import load_model
from playground.engine.model import LoadedModel

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
