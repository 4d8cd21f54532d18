"""The most memory that a prefill takes, told apart: weights, keys and values, states, logits, the rest.

Logits of every position of a long prompt can be the largest part of all, and nobody looks at them: a
prefill that asks for them holds tokens x vocabulary numbers. Arithmetic alone; what a device counted is
handed in.
"""

from collections.abc import Iterable

from playground.core.experiment import Conditions, MemoryPart, Origin, PartName, PeakMemory
from playground.core.kv import CacheSpec

LOGIT_BYTES = 4
"""Logits are turned to float32 before anything is chosen from them."""


def logits_bytes(positions: int, vocabulary: int) -> int:
    """Of the logits of so many positions in float32."""
    return positions * vocabulary * LOGIT_BYTES


def activation_bytes(
    tokens: int, hidden: int, inner: int, bytes_per_number: int, hidden_copies: int = 4
) -> int:
    """Estimate what a layer holds at its busiest besides weights and cache.

    `tokens` are those of one forward: `hidden_copies` vectors of the model's width (the stream, its norm,
    queries, what is added) and three of the feed-forward's (gate, up and their product).
    """
    return tokens * (hidden_copies * hidden + 3 * inner) * bytes_per_number


def peak_memory(
    conditions: Conditions,
    tokens: int,
    *,
    weights_bytes: int | None,
    vocabulary: int,
    spec: CacheSpec | None = None,
    kv_bytes: int | None = None,
    state_bytes: int | None = None,
    logit_rows: int = 1,
    total_bytes: int | None = None,
    rest_bytes: int | None = None,
    predicted_weights_bytes: int | None = None,
    all_logits_bytes: int | None = None,
) -> PeakMemory:
    """Parts and total of a prefill of `tokens` that asks for `logit_rows` rows of logits.

    `kv_bytes` and `state_bytes` are measured where given, else computed from `spec`. With a measured
    `total_bytes` the rest is what it has beyond the parts; without one, or where it is smaller than the
    parts and so cannot be all of them, the rest is the estimate `rest_bytes`, and the total the sum.
    `all_logits_bytes` is the measured peak of the same prefill with the logits of every position.
    """
    logits = logits_bytes(logit_rows, vocabulary)
    parts = [
        MemoryPart("weights", weights_bytes, "measured", predicted_weights_bytes),
        _part("kv", kv_bytes, spec.used_bytes(tokens) if spec else None),
        _part("state", state_bytes, spec.state_bytes() if spec else None),
        MemoryPart("logits", logits, "computed", logits),
    ]
    together = _sum(part.bytes for part in parts)
    if total_bytes is not None and together is not None and total_bytes < together:
        total_bytes = None
    predicted_rest, origin = rest_bytes, _origin_of(total_bytes)
    if total_bytes is None:
        total_bytes = _sum((together, rest_bytes))
    else:
        rest_bytes = total_bytes - together if together is not None else None
    parts.append(MemoryPart("rest", rest_bytes, origin, predicted_rest, "estimated"))
    return PeakMemory(
        conditions=conditions,
        tokens=tokens,
        logit_rows=logit_rows,
        parts=tuple(parts),
        total_bytes=total_bytes,
        total_origin=origin,
        logits_of_all_bytes=logits_bytes(tokens, vocabulary),
        predicted_bytes=_sum(_predicted(part) for part in parts),
        all_logits_bytes=all_logits_bytes if origin == "measured" else None,
    )


def _part(name: PartName, measured: int | None, computed: int | None) -> MemoryPart:
    if measured is not None:
        return MemoryPart(name, measured, "measured", computed)
    return MemoryPart(name, computed, "computed", computed)


def _predicted(part: MemoryPart) -> int | None:
    """Weights stand where they were read off where their number is not computed."""
    return part.bytes if part.name == "weights" and part.predicted_bytes is None else part.predicted_bytes


def _origin_of(total_bytes: int | None) -> Origin:
    return "estimated" if total_bytes is None else "measured"


def _sum(values: Iterable[int | None]) -> int | None:
    """None where one of them is not known."""
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
