"""Numbers about a finished or running run, each with its definition.

Prefill and decode are never mixed: n tokens are 1 from the prefill and n - 1 decode steps.
Unknown is None. Knows only records.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles

from playground.core.events import Stepped
from playground.core.run import Lane, Run


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of one lane, in seconds and tokens per second.

    `time_to_first_token_seconds` counts from the request's start in the engine, queueing apart.
    `decode_tokens_per_second` is (n - 1) / (t_last - t_first). `step_seconds` are the decode
    steps, without the first token.
    """

    load_seconds: float | None
    queue_seconds: float
    prefill_seconds: float | None
    prefill_tokens_computed: int
    prefill_tokens_reused: int
    prefill_tokens_per_second: float | None
    time_to_first_token_seconds: float | None
    decode_tokens_per_second: float | None
    inter_token_median_seconds: float | None
    inter_token_p95_seconds: float | None
    step_seconds: list[float]
    warm_up: bool


def timing(run: Run, lane: Lane) -> Timing:
    """The times of `lane`, as far as they are known yet."""
    prefilled = run.prefilled
    prefill_seconds = prefilled.end_seconds - prefilled.start_seconds if prefilled else None
    computed = prefilled.tokens_computed if prefilled else 0
    ends = [step.end_seconds for step in lane.steps]
    gaps = [later - earlier for earlier, later in pairwise(ends)]
    return Timing(
        load_seconds=run.started.load_seconds if run.started else None,
        queue_seconds=prefilled.queue_seconds if prefilled else 0.0,
        prefill_seconds=prefill_seconds,
        prefill_tokens_computed=computed,
        prefill_tokens_reused=prefilled.tokens_reused if prefilled else 0,
        prefill_tokens_per_second=_rate(computed, prefill_seconds),
        time_to_first_token_seconds=ends[0] if ends else None,
        decode_tokens_per_second=_rate(len(gaps), ends[-1] - ends[0]) if gaps else None,
        inter_token_median_seconds=median(gaps) if gaps else None,
        inter_token_p95_seconds=percentile_95(gaps),
        step_seconds=[step.end_seconds - step.start_seconds for step in lane.steps[1:]],
        warm_up=bool(prefilled and prefilled.warm_up),
    )


def percentile_95(values: Sequence[float]) -> float | None:
    """The 95th percentile (linear between ranks); None below two values."""
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else None


def surprisal_bits(step: Stepped) -> float:
    """-log2 of the chosen token's raw probability: how unexpected the model found it."""
    return max(0.0, -step.raw_logprob / math.log(2))


def mean_surprisal_bits(lane: Lane) -> float | None:
    """Mean surprisal of the lane's tokens under the raw model; 2 to this power is perplexity."""
    return _mean([surprisal_bits(step) for step in lane.steps])


def distinct(ids: Sequence[int], n: int) -> float | None:
    """Distinct n-grams over all n-grams (Li et al. 2016, arXiv:1510.03055); None where there are none."""
    grams = [tuple(ids[i : i + n]) for i in range(len(ids) - n + 1)]
    return len(set(grams)) / len(grams) if grams else None


REPEATED_GRAM = 4
"""How many tokens in a row count as a phrase that is repeated."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What a lane's answer is like and what it cost; means are over its tokens, None where there are none.

    `mean_surprisal_bits`, `perplexity` (2 to it), `mean_entropy_bits` are of the raw model. `mean_kept_mass`
    is the share the filters left, `effective_choices` 2 to the mean entropy after the settings: among how
    many equally likely candidates the draw was (1 for greedy). `repeated_share` is that of the runs of
    `REPEATED_GRAM` tokens that stood there before. `seconds` lead from the request's start in the engine to
    the last token; `decode_tokens_per_second` is that of `Timing`. `kv_used_bytes` is measured at the last step.
    """

    tokens: int
    mean_surprisal_bits: float | None
    perplexity: float | None
    mean_entropy_bits: float | None
    mean_kept_mass: float | None
    effective_choices: float | None
    distinct_1: float | None
    distinct_2: float | None
    repeated_share: float | None
    finish_reason: str | None
    seconds: float | None
    decode_tokens_per_second: float | None
    kv_used_bytes: int | None


def measures(run: Run, lane: Lane) -> Measures:
    """The measures of `lane`, as far as it has come."""
    steps, ids = lane.steps, lane.token_ids
    bits, after = mean_surprisal_bits(lane), _mean([step.processed_entropy_bits for step in steps])
    repeated = distinct(ids, REPEATED_GRAM)
    return Measures(
        tokens=len(steps),
        mean_surprisal_bits=bits,
        perplexity=power_of_two(bits),
        mean_entropy_bits=_mean([step.raw_entropy_bits for step in steps]),
        mean_kept_mass=_mean([step.kept_mass for step in steps]),
        effective_choices=power_of_two(after),
        distinct_1=distinct(ids, 1),
        distinct_2=distinct(ids, 2),
        repeated_share=None if repeated is None else 1 - repeated,
        finish_reason=lane.finish_reason,
        seconds=steps[-1].end_seconds if steps else None,
        decode_tokens_per_second=timing(run, lane).decode_tokens_per_second,
        kv_used_bytes=steps[-1].kv_used_bytes if steps else None,
    )


def power_of_two(bits: float | None) -> float | None:
    """2 to so many bits; None where they are unknown, or too many for a number."""
    return None if bits is None or bits >= 1024 else 2.0**bits


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _rate(count: int, seconds: float | None) -> float | None:
    return count / seconds if seconds and count else None
