"""The slow reference: transformers' own `generate`, and the plain meaning of a draw."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from playground.core.decoding import Decoding
from playground.engine.choice import Choice, choose, read
from playground.engine.pipeline import SamplingStage
from playground.engine.raw import raw_rows

NEVER = 10**6
"""As a stop token: no model here has it."""


def greedy_ids(module: Any, prompt_ids: Sequence[int], tokens: int, stop_id: int = 1) -> list[int]:
    """Ids that `generate` chooses greedily."""
    output = module.generate(
        torch.tensor([prompt_ids]), do_sample=False, max_new_tokens=tokens, eos_token_id=stop_id,
        pad_token_id=0,
    )  # fmt: skip
    return list(output[0, len(prompt_ids) :].tolist())


def processed_probabilities(
    module: Any, prompt_ids: Sequence[int], ids: Sequence[int], decoding: Decoding, patch: pytest.MonkeyPatch
) -> torch.Tensor:
    """(steps, vocabulary): softmax of `generate(output_scores=True)` made to draw exactly `ids`.

    The scores are generate's own, in fp32; their softmax is taken in fp64, since torch's fp32 softmax over
    49,152 unfiltered candidates is itself off by up to 1.6e-5.
    """
    wanted = iter(ids)
    patch.setattr(torch, "multinomial", lambda *_, **__: torch.tensor([[next(wanted)]]))
    output = module.generate(
        torch.tensor([prompt_ids]), do_sample=True, max_new_tokens=len(ids), eos_token_id=NEVER,
        pad_token_id=0, temperature=decoding.temperature, top_k=decoding.top_k, top_p=decoding.top_p,
        min_p=decoding.min_p or None, repetition_penalty=decoding.repetition_penalty,
        typical_p=decoding.typical_p if decoding.typical_p < 1 else None,
        output_scores=True, return_dict_in_generate=True,
    )  # fmt: skip
    assert output.sequences[0, len(prompt_ids) :].tolist() == list(ids)
    return torch.stack(output.scores)[:, 0].double().softmax(-1)


def landed(row: torch.Tensor, draw: float) -> tuple[int, float]:
    """Where `draw` falls on the distribution `row`, and how far from the next boundary.

    A full sort by probability, ties by id: the order of the first 1,024 candidates, beyond which no
    test here looks.
    """
    shares, order = row.double().sort(descending=True, stable=True)
    cumulative = shares.cumsum(0)
    place = int((cumulative <= draw).sum().clamp(max=int((shares > 0).sum()) - 1))
    return int(order[place]), float((cumulative[shares > 0] - draw).abs().min())


def choose_from(
    row: torch.Tensor, ids: torch.Tensor, stages: tuple[SamplingStage, ...], draw: float | None, top_n: int
) -> tuple[Choice, torch.Tensor]:
    """`choose` for one row of logits (vocabulary,), as the loop does it for a lane."""
    chosen = choose(raw_rows(row[None], top_n)[0], ids, stages, draw)
    return read([chosen])[0], chosen.processed()
