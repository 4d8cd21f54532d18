"""Models whose weights are drawn: they run like any other, twice the same, and say what they cannot be."""

import json
from pathlib import Path

import pytest
import torch

from playground import catalog
from playground.core.decoding import Decoding
from playground.core.events import Stepped
from playground.core.request import Request
from playground.engine.decode import stream
from playground.engine.drawn import drawn_model
from playground.engine.progress import CannotLoad

SHAPE = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300, "max_position_embeddings": 256,
}  # fmt: skip


def config(folder: Path, **changes: object) -> str:
    file = folder / "config.json"
    file.write_text(json.dumps(SHAPE | changes))
    return str(file)


def test_it_runs_and_its_tokens_are_their_numbers(tmp_path: Path) -> None:
    model = drawn_model(config(tmp_path), device="cpu")
    request = Request(prompt_ids=(1, 2, 3), lanes=(Decoding(seed=3, max_new_tokens=6),))
    steps = [event for event in stream(model, request) if isinstance(event, Stepped)]
    assert len(steps) == 6 and model.lean_step is not None
    assert all(step.text.strip() == str(step.token.id) for step in steps)
    assert model.facts.dtype == "float32" and model.facts.kv_bytes_per_token == 2 * 2 * 2 * 16 * 4


def test_two_draws_are_the_same_and_in_the_dtype_that_is_asked_for(tmp_path: Path) -> None:
    one, other = (drawn_model(config(tmp_path), device="cpu", dtype="bfloat16") for _ in range(2))
    pairs = zip(one.module.parameters(), other.module.parameters(), strict=True)
    assert all(a.dtype == torch.bfloat16 and torch.equal(a, b) for a, b in pairs)


def test_a_shape_that_is_none_or_does_not_fit_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotLoad, match="knows no model of the shape"):
        drawn_model(config(tmp_path, model_type="perceptron"), device="cpu")
    with pytest.raises(catalog.UnknownConfig):
        drawn_model(str(tmp_path / "nothing.json"), device="cpu")
    with pytest.raises(CannotLoad, match="memory"):
        drawn_model("llama-3.1-405b", device="cpu")
