"""A finished run in two lines for the terminal: what happened, then how.

Knows records only.
"""

from playground.core.compare import first_divergence
from playground.core.decoding import describe
from playground.core.metrics import Timing, timing
from playground.core.phases import phases
from playground.core.report import failure, kv_cache
from playground.core.run import Lane, Run
from playground.core.units import bytes_text, seconds_text, shares_text

_ENDINGS = {
    "stop_token": "ended by the model's stop token",
    "stop_string": "ended by a stop string",
    "max_new_tokens": "ended at the limit of new tokens",
    "context_limit": "ended where the model's context is full",
    "cancelled": "stopped",
    "error": "broke off",
    None: "unfinished",
}


def sentence(run: Run, lane: Lane) -> str:
    """`39 tokens read in 99 ms, then 37 more, one every 36 ms.` The first token comes with the prefill."""
    times = timing(run, lane)
    if times.prefill_seconds is None:
        return "The prompt was not read to its end."
    read = f"{_count(times.prefill_tokens_computed, 'token')} read in {seconds_text(times.prefill_seconds)}"
    if times.prefill_tokens_reused:
        read += f" ({times.prefill_tokens_reused:,} more were still in the cache)"
    if len(lane.steps) < 2:
        return f"{read}, {'one' if lane.steps else 'none'} written."
    return f"{read}, then {len(lane.steps) - 1:,} more{_pace(times)}."


def details(run: Run, lane: Lane) -> str:
    """Settings, ending and cache of a run of one lane."""
    parts = [*_choosing(lane), _ENDINGS[lane.finish_reason], *_shares(run), cache_line(run, lane)]
    if timing(run, lane).warm_up:
        parts.append("first run, clocks include one-time work")
    return " · ".join(parts)


def lane_details(lane: Lane, reference: Lane) -> str:
    """Settings and ending of one lane among several, and where it leaves the reference."""
    parts = [*_choosing(lane), _count(len(lane.steps), "token"), _ENDINGS[lane.finish_reason]]
    if lane is not reference:
        step = first_divergence(reference.token_ids, lane.token_ids)
        parts.append("the same as A" if step is None else f"leaves A at token {step + 1:,}")
    return " · ".join(parts)


def cache_line(run: Run, lane: Lane) -> str:
    """The lane's KV cache at its end: measured, beside the arithmetic."""
    cache = kv_cache(run, lane)
    if cache["used_bytes"] is None:
        return f"KV cache of {_count(cache['tokens'], 'token')}, not measurable"
    grown = _beside(cache["used_bytes"], cache["predicted_bytes"])
    text = f"KV cache of {_count(cache['tokens'], 'token')}: {grown}"
    if cache["state_bytes"] or cache["predicted_state_bytes"]:
        text += f"; constant state: {_beside(cache['state_bytes'], cache['predicted_state_bytes'])}"
    return f"{text}. {' '.join(cache['reasons'])}" if cache["reasons"] else text


def model_line(run: Run) -> str:
    """What ran, where and in which numbers."""
    if run.started is None:
        return ""
    model = run.started.model
    place = model.device_name or model.device
    spread = ", ".join(f"{bytes_text(held)} {where}" for where, held in model.weights_places)
    weights = f" · weights: {spread}" if spread else ""
    return f"{model.name} · {place} · {model.weights or model.dtype}{weights}"


def failures(run: Run) -> list[str]:
    """Each failure's sentence once."""
    found = [failure(run, lane) for lane in run.lanes] or [run.failed.message if run.failed else None]
    return list(dict.fromkeys(sentence for sentence in found if sentence))


def _beside(measured: int | None, predicted: int | None) -> str:
    if measured is None:
        return "not measurable"
    text = f"{bytes_text(measured)} measured"
    if predicted is None:
        return text
    return f"{text}, as predicted" if predicted == measured else f"{text}, {bytes_text(predicted)} predicted"


def _pace(times: Timing) -> str:
    if times.inter_token_median_seconds is None:
        return ""
    return f", one every {seconds_text(times.inter_token_median_seconds)}"


def _shares(run: Run) -> list[str]:
    """How the run's time parts between its two phases."""
    found = phases(run)
    if found.decode is None or found.prefill_share is None:
        return []
    prefill, decode = shares_text(found.prefill_share)
    return [f"prefill {prefill}, decode {decode} of the time"]


def _choosing(lane: Lane) -> list[str]:
    drawn = not lane.decoding.greedy and lane.decoding.seed is not None
    return [describe(lane.decoding), *([f"seed {lane.decoding.seed}"] if drawn else [])]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
