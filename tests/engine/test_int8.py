"""Matrices in eight bits: the arithmetic, what becomes of a model, and how far it is from the full one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from playground.core.branch import continued
from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import fold
from playground.engine import int8
from playground.engine.costing import cost_shape
from playground.engine.decode import stream
from playground.engine.divergence import divergence
from playground.engine.errors import RequestError
from playground.engine.lean import lean_step
from playground.engine.load import load_model
from playground.engine.model import LoadedModel
from playground.engine.progress import CannotLoad, UnknownChoice

LANES = (replace(GREEDY, max_new_tokens=6), Decoding(seed=4, max_new_tokens=6))


@pytest.fixture
def eight_bit(make_model: Callable[..., LoadedModel]) -> LoadedModel:
    model = make_model()
    held = int8.quantise(model.module)
    model.facts = replace(model.facts, weights=int8.NAME, weights_bytes=held)
    model.lean_step = lean_step(model.module)
    return model


def test_a_row_is_rounded_to_half_of_its_own_step() -> None:
    torch.manual_seed(1)
    weight = torch.randn(7, 64) * torch.tensor([1e-6, 1, 5, 0.1, 100, 1, 0])[:, None]
    steps, scales = int8.rounded(weight)
    assert steps.dtype == torch.int8 and int(steps.abs().max()) == 127
    off = (steps.float() * scales.float()[:, None] - weight).abs().amax(1)
    assert (off <= 0.51 * scales.float() + 127 * 2**-9 * scales.float()).all()
    assert float(off[-1]) == 0


@pytest.mark.parametrize("rows", [1, 4, 8, 9, 40])
def test_few_rows_and_many_are_multiplied_with_the_same_numbers(rows: int) -> None:
    torch.manual_seed(rows)
    steps, scales = int8.rounded(torch.randn(48, 96))
    hidden = torch.randn(rows, 96)
    expected = hidden @ (steps.float() * scales.float()[:, None]).T
    found = int8.times(hidden, steps, scales)
    assert found.dtype == torch.float32 and found.shape == expected.shape
    assert float((found - expected).abs().max() / expected.abs().max()) < 0.01
    assert torch.equal(int8.times(hidden[0], steps, scales), int8.times(hidden[:1], steps, scales)[0])


def test_a_quantised_model_runs_by_the_lean_step_and_says_what_it_is(eight_bit: LoadedModel) -> None:
    assert eight_bit.lean_step is not None and int8.is_quantised(eight_bit.module)
    run = fold(stream(eight_bit, Request("hello", LANES, chat=False)))
    assert all(len(lane.steps) == 6 or lane.finish_reason == "stop_token" for lane in run.lanes)
    assert "eight_bit" in {note.key for note in run.notes}
    again = fold(stream(eight_bit, replace(continued(run, 0), run="other")))
    assert "again_8_bit" in {note.key for note in again.notes}


def test_its_weights_are_counted_in_the_bytes_that_they_take(
    eight_bit: LoadedModel, make_model: Callable[..., LoadedModel]
) -> None:
    full, rounded = cost_shape(make_model()), cost_shape(eight_bit)
    assert full is not None and rounded is not None
    assert (rounded.body_parameters, rounded.head_parameters) == (full.body_parameters, full.head_parameters)
    assert 1.0 < rounded.bytes_per_parameter < 1.05 and full.bytes_per_parameter == 4
    matrices = rounded.body_parameters + rounded.head_parameters
    assert eight_bit.facts.weights_bytes == pytest.approx(
        matrices * rounded.bytes_per_parameter
        + sum(weight.nbytes for weight in eight_bit.module.parameters()),
        rel=0.001,
    )


def test_a_model_is_no_bits_from_itself_and_some_from_its_rounded_self(
    eight_bit: LoadedModel, make_model: Callable[..., LoadedModel]
) -> None:
    full, request = make_model(), Request("hello world, the quick brown fox", chat=False)
    same = divergence(full, full, request)
    assert same.mean_bits == same.largest_bits == 0 and same.agreed == same.places
    apart = divergence(full, eight_bit, request)
    assert 0 < apart.mean_bits <= apart.largest_bits < 0.1
    assert apart.largest_after in full.vocabulary.tokens(range(full.facts.vocabulary))
    long = Request(prompt_ids=tuple([5] * 1025))
    with pytest.raises(RequestError, match="at most 1,024"):
        divergence(full, eight_bit, long)


def test_a_divergence_is_what_its_formula_says(make_model: Callable[..., LoadedModel]) -> None:
    full, other = make_model(), make_model(initializer_range=0.1)
    ids = (5, 9, 12, 7)
    with torch.inference_mode():
        p, q = (
            model.module(torch.tensor([ids])).logits[0].double().log_softmax(-1) for model in (full, other)
        )
    expected = (p.exp() * (p - q)).sum(-1) / torch.tensor(2.0, dtype=torch.float64).log()
    found = divergence(full, other, Request(prompt_ids=ids))
    assert found.mean_bits == pytest.approx(float(expected.mean()), abs=1e-5)
    assert found.largest_bits == pytest.approx(float(expected.max()), abs=1e-5)


@pytest.mark.model
def test_the_default_model_in_eight_bits_is_near_itself() -> None:
    full, rounded = load_model(dtype="float32"), load_model(dtype="int8")
    assert rounded.facts.dtype == "float32" and rounded.facts.weights == "int8"
    assert rounded.lean_step is not None
    assert rounded.facts.weights_bytes is not None and full.facts.weights_bytes is not None
    assert rounded.facts.weights_bytes < 0.47 * full.facts.weights_bytes  # the embedding stays as it is
    apart = divergence(full, rounded, Request("What is gravity? Answer in two sentences."))
    assert apart.mean_bits < 0.03 and apart.agreed > 0.9 * apart.places


def test_what_cannot_be_rounded_here_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    with pytest.raises(UnknownChoice, match="or int8"):
        load_model(dtype="int3")
    monkeypatch.setattr(
        "playground.engine.load.devices.choose_device", lambda name="auto": torch.device("cuda:0")
    )
    with pytest.raises(CannotLoad, match="--device cpu"):
        load_model(dtype="int8")
