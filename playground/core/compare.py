"""Where lanes of one prompt part. Knows token ids only."""

from collections.abc import Sequence

from playground.core.run import Lane


def first_divergence(reference: Sequence[int], other: Sequence[int]) -> int | None:
    """The first step at which the ids differ; a lane that only stops earlier differs where it stops.

    None where both are the same from start to end.
    """
    for step, (a, b) in enumerate(zip(reference, other, strict=False)):
        if a != b:
            return step
    return None if len(reference) == len(other) else min(len(reference), len(other))


def lanes_first_divergence(lanes: Sequence[Lane], reference: int = 0) -> int | None:
    """The earliest step at which any lane leaves the reference lane, None where none does."""
    ids = lanes[reference].token_ids
    steps = [first_divergence(ids, lane.token_ids) for lane in lanes]
    return min((step for step in steps if step is not None), default=None)
