"""A run as the JSON object that `--json`, the HTTP API and scripts read.

The keys are the public interface and stay. JSON here is strict: no NaN, no Infinity. Knows
records only.
"""

import math
from dataclasses import asdict
from typing import Any

from playground.core.compare import first_divergence, lanes_first_divergence
from playground.core.decoding import as_settings, describe
from playground.core.events import Stepped
from playground.core.metrics import measures, timing
from playground.core.phases import phases
from playground.core.run import Lane, Run
from playground.core.tokens import Candidate
from playground.core.tree import as_json, same_settings, tree


def generation(run: Run, index: int = 0) -> dict[str, Any]:
    """One lane as `generate --json` prints it; its error alone where the run never began."""
    if run.started is None:
        return _never_began(run)
    lane = run.lanes[index]
    texts = lane.step_texts()
    return {
        "text": lane.text,
        "prompt_token_ids": run.prompt_ids,
        "token_ids": lane.token_ids,
        "finish_reason": lane.finish_reason or ("error" if run.failed else None),
        "error": failure(run, lane),
        "seed": lane.decoding.seed,
        "settings": as_settings(lane.decoding),
        "timing": _timing(run, lane),
        "kv_cache": kv_cache(run, lane),
        "steps": [_step(lane, step, text) for step, text in zip(lane.steps, texts, strict=True)],
        "notes": [note.text for note in run.notes],
        "model": _object(run.started.model),
    }


def comparison(run: Run) -> dict[str, Any]:
    """All lanes as `compare --json` prints them, as `generation` does each; lane 0 is the reference.

    Lanes that differ in their seeds alone are draws of one distribution: `draws` counts them, and `tree` holds
    their continuations with counts.
    """
    if run.started is None:
        return _never_began(run)
    reference = run.lanes[0].token_ids
    lanes = [
        generation(run, i) | {
            "spec": lane.decoding.name or describe(lane.decoding),
            "diverges_at": first_divergence(reference, lane.token_ids),
            "measures": asdict(measures(run, lane)),
        }
        for i, lane in enumerate(run.lanes)
    ]  # fmt: skip
    return {
        "lanes": lanes,
        "first_divergence": lanes_first_divergence(run.lanes),
        "prefill": _object(run.prefilled) if run.prefilled else None,
        "timing": _timing(run, max(run.lanes, key=lambda lane: len(lane.steps))),
    } | (_draws(run) if same_settings(run.lanes) else {})  # fmt: skip


def _draws(run: Run) -> dict[str, Any]:
    return {"draws": len(run.lanes), "tree": as_json(tree(run.lanes), len(run.lanes))}


def kv_cache(run: Run, lane: Lane) -> dict[str, Any]:
    """The lane's cache at its last step: measured bytes beside the arithmetic, and why they differ.

    Used, allocated and predicted bytes are of what grows with the tokens; the constant state stands apart.
    `reasons` is empty where measured and predicted are equal, or why they differ is not known.
    """
    last: Any = lane.steps[-1] if lane.steps else run.prefilled
    model = run.started.model if run.started else None
    measured = (last.kv_used_bytes, last.kv_state_bytes) if last else (0, 0)
    predicted = (last.kv_predicted_bytes, model.kv_state_bytes if model else None) if last else (0, 0)
    return {
        "tokens": last.kv_tokens if last else 0,
        "used_bytes": measured[0],
        "allocated_bytes": last.kv_allocated_bytes if last else 0,
        "predicted_bytes": predicted[0],
        "state_bytes": measured[1],
        "predicted_state_bytes": predicted[1],
        "reasons": [reason.text for reason in model.kv_reasons] if model and measured != predicted else [],
        "bytes_per_token": model.kv_bytes_per_token if model else None,
        "dtype": model.dtype if model else None,
    }


def failure(run: Run, lane: Lane) -> str | None:
    """The sentence of the failure that ended the lane, if one did."""
    failed = lane.failed or run.failed
    return failed.message if failed else None


def _object(record: Any) -> dict[str, Any]:
    """A record as a JSON object, its tuples as lists."""
    return asdict(
        record, dict_factory=lambda pairs: {k: list(v) if isinstance(v, tuple) else v for k, v in pairs}
    )


def _never_began(run: Run) -> dict[str, Any]:
    return {"error": run.failed.message if run.failed else "The run ended before it began."}


def _timing(run: Run, lane: Lane) -> dict[str, Any]:
    """The lane's times; `prefill_share` is the prefill's part of the run's two phases, None before both."""
    found = phases(run)
    share = found.prefill_share if found.decode is not None else None
    return asdict(timing(run, lane)) | {"prefill_share": share}


def _step(lane: Lane, step: Stepped, text: str) -> dict[str, Any]:
    return {
        "lane": step.lane,
        "step": step.step,
        "position": step.position,
        "id": step.token.id,
        "text": text,
        "piece": step.token.text,
        "bytes": step.token.bytes,
        "special": step.token.special,
        "raw_rank": step.raw_rank,
        "raw_probability": math.exp(step.raw_logprob),
        "raw_logprob": step.raw_logprob,
        "processed_probability": step.processed_probability,
        "draw": step.draw,
        "raw_entropy_bits": step.raw_entropy_bits,
        "processed_entropy_bits": step.processed_entropy_bits,
        "kept_count": step.kept_count,
        "kept_mass": step.kept_mass,
        "withheld": lane.withheld(step.step),
        "seconds": step.end_seconds - step.start_seconds,
        "kv_tokens": step.kv_tokens,
        "kv_used_bytes": step.kv_used_bytes,
        "kv_allocated_bytes": step.kv_allocated_bytes,
        "kv_predicted_bytes": step.kv_predicted_bytes,
        "kv_state_bytes": step.kv_state_bytes,
        "positions_computed": step.positions_computed,
        "positions_reused": step.positions_reused,
        "logsumexp": step.logsumexp,
        "stages": [asdict(stage) for stage in step.stages],
        "parent": step.parent,
        "origin": step.origin,
        "candidates": [_candidate(candidate) for candidate in step.candidates],
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "id": candidate.token.id,
        "text": candidate.token.text,
        "bytes": candidate.token.bytes,
        "raw_logprob": candidate.raw_logprob,
        "raw_probability": math.exp(candidate.raw_logprob),
        "processed_probability": candidate.processed_probability,
        "removed_by": candidate.removed_by,
        "special": candidate.token.special,
    }
