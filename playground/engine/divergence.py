"""How far one model's next-token distributions are from another's, over the same text.

For a model whose weights were rounded, against itself as it was: both read the text once, position by position
side by side. Knows no page and no settings: the distributions are the raw ones.
"""

import math
from functools import partial
from typing import Any

import torch

from playground.core.control import Control
from playground.core.request import Request
from playground.core.scoring import Divergence
from playground.engine.cache import forward_all, new_cache
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.prompts import encode_prompt
from playground.engine.room import PREFILL_CHUNK_TOKENS, Extent, Room
from playground.engine.score import LOGITS_NUMBERS_LIMIT, CannotScore


def divergence(
    full: LoadedModel, other: LoadedModel, request: Request, control: Control | None = None
) -> Divergence:
    """`other` against `full` at every token of the request's prompt.

    The Kullback-Leibler divergence of a place is the sum over the vocabulary of p log2(p / q), p being of `full`.
    Raises `RequestError` before anything is computed, `CannotScore` where it was stopped.
    """
    control = control or Control()
    prompt = encode_prompt(full.tokenizer, full.vocabulary, request)
    if full.facts.vocabulary != other.facts.vocabulary:
        raise RequestError("The two models have different vocabularies, so they cannot be compared.")
    context = full.facts.context
    if context is not None and len(prompt.tokens) > context:
        raise RequestError(
            f"The prompt has {len(prompt.tokens):,} tokens and this model reads at most {context:,}; shorten it."
        )
    ids = [token.id for token in prompt.tokens]
    bits: list[float] = []
    agreed = 0
    caches = [new_cache(model.module) for model in (full, other)]
    size = max(1, min(PREFILL_CHUNK_TOKENS, LOGITS_NUMBERS_LIMIT // full.facts.vocabulary))
    for begin in range(0, len(ids), size):
        control.held_seconds()
        if control.stopped:
            raise CannotScore("The comparison was stopped before its end, so nothing is shown of it.")
        chunk = ids[begin : begin + size]
        for model in (full, other):
            Room(model).require(Extent(begin, min(begin, 1)), Extent(len(ids), 1), 4 * len(chunk))
        ours, theirs = (
            model.turns.take(partial(_logprobs, model, chunk, cache))
            for model, cache in zip((full, other), caches, strict=True)
        )
        found, same = _compared(ours, theirs)
        bits += found
        agreed += same
    largest = max(range(len(bits)), key=bits.__getitem__)
    return Divergence(
        full.facts, other.facts, len(bits), sum(bits) / len(bits), bits[largest], prompt.tokens[largest], agreed
    )  # fmt: skip


@torch.inference_mode()
def _logprobs(model: LoadedModel, ids: list[int], cache: Any) -> torch.Tensor:
    """(positions, vocabulary) in fp32, on the CPU."""
    batch = torch.tensor([ids], device=model.device)
    return forward_all(model.module, batch, cache, len(ids))[0].float().log_softmax(-1).cpu()


@torch.inference_mode()
def _compared(full: torch.Tensor, other: torch.Tensor) -> tuple[list[float], int]:
    """Bits of each position, and at how many the most probable token is the same."""
    nats = (full.exp() * (full - other)).double().sum(-1).clamp_min(0)
    return (nats / math.log(2)).tolist(), int((full.argmax(-1) == other.argmax(-1)).sum())
