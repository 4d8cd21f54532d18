"""The numbers that a guided tour tells of one run, and the arithmetic that no run has to make.

Each is a function of the run's record, or of a config; what is measured and what is computed keeps its name
in the key. Unknown is None. Knows records and configs, no page and no engine.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from playground.core.cost import Device, Shape, decode_cost, verdict
from playground.core.decoding import GREEDY, Decoding
from playground.core.events import Stepped
from playground.core.kv import CacheSpec, cache_spec
from playground.core.metrics import mean_surprisal_bits, timing
from playground.core.phases import phases
from playground.core.race import work
from playground.core.request import Request
from playground.core.run import Lane, Run
from playground.core.scoring import bits
from playground.core.sizing import drawn_down

TEMPERATURES = (0.0, 0.3, 0.7, 1.0, 1.5, 2.0)
"""At which one step is shown."""

SEED, NEW_TOKENS = 18, 40
GUESSES = 4
GUESS_FROM = 4
GUESS_BITS = (1.5, 4.5)
"""How undecided the model has to be for a guess to be worth making."""


def lesson_request(prompt: str, chat: bool = False) -> Request:
    """The run that most of a tour is told of: a temperature below 1, and no filter that would have to be
    explained first. The seed is fixed, so that a model gives the same answer in every tour."""
    lane = Decoding(temperature=0.7, top_p=1.0, seed=SEED, max_new_tokens=NEW_TOKENS)
    return Request(prompt, (lane,), chat=chat, top_n=10)


def temperatures_request(prompt_ids: Sequence[int]) -> Request:
    """One token after the same prompt at several temperatures, in one prefill."""
    warm = Decoding(top_p=1.0, seed=SEED, max_new_tokens=1)
    lanes = [replace(warm, temperature=t) if t else replace(GREEDY, max_new_tokens=1) for t in TEMPERATURES]
    return Request("", tuple(lanes), chat=False, prompt_ids=tuple(prompt_ids), top_n=10)


def run_facts(run: Run) -> dict[str, Any]:
    """What a tour says of a run of one lane that has at least one step; seconds are measured."""
    assert run.started is not None
    lane, model, prompt = run.lanes[0], run.started.model, len(run.prompt_ids)
    times, parts, last = timing(run, lane), phases(run), lane.steps[-1]
    read = _read_bytes(model.weights_bytes, last.kv_used_bytes)
    gap = times.inter_token_median_seconds
    return {
        "prompt_tokens": prompt,
        "own_tokens": sum(run.started.own) if run.started.own else prompt,
        "vocabulary": model.vocabulary,
        "new_tokens": len(lane.steps),
        "prefill_seconds": times.prefill_seconds,
        "prefill_tokens_per_second": times.prefill_tokens_per_second,
        "first_token_seconds": times.time_to_first_token_seconds,
        "total_seconds": last.end_seconds,
        "decode_tokens_per_second": times.decode_tokens_per_second,
        "gap_seconds": gap,
        "decode_seconds": parts.decode.seconds if parts.decode else None,
        "prefill_pairs": work(prompt, 1, cached=True).attention_dot_products_needed,
        "all_pairs": work(prompt, len(lane.steps), cached=True).attention_dot_products_needed,
        "weights_bytes": model.weights_bytes,
        "cache_bytes": last.kv_used_bytes,
        "cache_tokens": last.kv_tokens,
        "step_read_bytes": read,
        "read_bytes_per_second": read / gap if read and gap else None,
        "bytes_per_token": model.kv_bytes_per_token,
        "formula": list(model.kv_formula) if model.kv_formula else None,
        "cached": asdict(work(prompt, len(lane.steps), cached=True)),
        "uncached": asdict(work(prompt, len(lane.steps), cached=False)),
        "mean_surprisal_bits": mean_surprisal_bits(lane),
        "guess": _guess(lane),
    }


def _read_bytes(weights: int | None, cache: int | None) -> int | None:
    return None if weights is None else weights + (cache or 0)


def _guess(lane: Lane) -> dict[str, Any] | None:
    """A step to be guessed: the first after a few at which the model was undecided, its best candidates by id."""
    low, high = GUESS_BITS
    step = next((s for s in lane.steps[GUESS_FROM:] if low <= s.raw_entropy_bits <= high and _plain(s)), None)
    if step is None:
        return None
    best = sorted(step.candidates, key=lambda c: (-c.raw_logprob, c.token.id))[:GUESSES]
    return {
        "step": step.step,
        "best": best[0].token.id,
        "best_bits": bits(best[0].raw_logprob),
        "drawn_bits": bits(step.raw_logprob),
        "options": [
            {"id": c.token.id, "probability": math.exp(c.raw_logprob), "bits": bits(c.raw_logprob)}
            for c in sorted(best, key=lambda c: c.token.id)
        ],
    }


def _plain(step: Stepped) -> bool:
    """Whether the best candidates are words to a reader: no special token, no mark, no half character."""
    best = sorted(step.candidates, key=lambda c: -c.raw_logprob)[:GUESSES]
    words = [c.token.text.strip() for c in best if not c.token.special and c.token.text.strip().isalpha()]
    return len(set(words)) == GUESSES


def saved_work(lengths: Sequence[int]) -> list[dict[str, Any]]:
    """The work of choosing n tokens after a prompt of one, with the cache and without."""
    return [
        {"n": n} | {name: asdict(work(1, n, cached=name == "cached")) for name in ("cached", "uncached")}
        for n in lengths
    ]


def prefill_pairs(lengths: Sequence[int]) -> list[dict[str, int]]:
    """Pairs of a query with a key at or before it, of prompts of these lengths."""
    return [{"n": n, "pairs": work(n, 1, cached=True).attention_dot_products_needed} for n in lengths]


def forwards(prompt_tokens: int, new_tokens: int) -> dict[str, int]:
    """Forward passes of an answer: one reads the prompt, each further token takes one more."""
    last = work(prompt_tokens, new_tokens, cached=True).kv_computed
    return {
        "prompt": prompt_tokens, "answer": new_tokens, "forwards": new_tokens, "decode": new_tokens - 1,
        "cached_positions": last, "sum": prompt_tokens + new_tokens,
    }  # fmt: skip


def cache_bytes(
    config: Mapping[str, Any], parameters: int, tokens: Sequence[int], users: Sequence[int]
) -> dict[str, Any]:
    """The cache of a known model from one number up, and at these lengths for so many users.

    `heads` are its own KV heads, those it would have without sharing, and a single one.
    """
    spec = cache_spec(config)
    token, queries = drawn_down(spec), spec.query_heads
    assert token is not None and queries is not None
    return {
        "bytes_per_number": spec.bytes_per_number,
        "query_heads": queries,
        "token": token,
        "weights_bytes": spec.format.vector_bytes(parameters),
        "parameters": parameters,
        "cells": [
            {
                "tokens": n, "users": u, "heads": h, "layer_bytes": kept.bytes_per_token // len(kept.layers),
                "each": kept.bytes_per_token, "bytes": kept.used_bytes(n, u),
            }
            for h, kept in _by_heads(spec, (token["kv_heads"], queries, 1))
            for n in tokens
            for u in users
        ],
    }  # fmt: skip


def _by_heads(spec: CacheSpec, heads: Sequence[int]) -> list[tuple[int, CacheSpec]]:
    return [(count, spec.with_kv_heads(count)) for count in heads]


def decode_ceiling(config: Mapping[str, Any], parameters: int, device: Device) -> dict[str, float]:
    """The least time of one decode step of an empty context: reading the weights, and multiplying them."""
    spec = cache_spec(config)
    shape = Shape(parameters, 0, spec.bytes_per_number, (), spec)
    cost = decode_cost(shape, 1)
    floor = verdict(cost, cost.bytes / device.bytes_per_second, device).floor_seconds
    computing = cost.flops / device.flops_per_second
    return {
        "weights_bytes": cost.weight_bytes,
        "bytes_per_second": device.bytes_per_second,
        "flops_per_second": device.flops_per_second,
        "reading_seconds": floor,
        "computing_seconds": computing,
        "tokens_per_second": 1 / floor,
        "tokens_per_second_computing": 1 / computing,
        "times": floor / computing,
    }
