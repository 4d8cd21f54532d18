"""From a server's few candidates to both distributions of a step: what is exact, and what only bounded.

The server gives the logprobs p of its N most probable tokens; of the rest only the mass r = 1 - sum p is
known, and that each is at most the smallest p given. At temperature T the rest weighs, by the convexity of
x^(1/T), between an even spread over all other tokens and as few tokens as possible of the size of the last
candidate. A filter whose cut is the same at both ends, and falls among the candidates, is exact; after such a
cut nothing unknown is left. Otherwise the middle is shown and named inexact. Knows no server.
"""

import math
from dataclasses import dataclass, field

from playground.core.decoding import Decoding
from playground.core.events import StageRecord

_LN2 = math.log(2)


@dataclass(slots=True)
class _State:
    """Weights of the candidates left, by index, and bounds of the weight of everything else."""

    weights: dict[int, float]
    low: float
    high: float
    others: int
    counted: int
    exact: bool = True
    mass: float = 1.0
    removed: dict[int, str] = field(default_factory=dict)
    stages: list[StageRecord] = field(default_factory=list)

    @property
    def rest(self) -> float:
        return (self.low + self.high) / 2

    @property
    def total(self) -> float:
        return sum(self.weights.values()) + self.rest

    def cut(self, kept: list[int], stage: str, sure: bool) -> None:
        """Keep the candidates `kept` and nothing else."""
        before, weight = self.total, sum(self.weights[i] for i in kept)
        self.exact &= sure
        self.mass *= weight / before if before > 0 else 1.0
        for i in set(self.weights) - set(kept):
            self.removed[i] = stage
        self.weights = {i: self.weights[i] for i in kept}
        self.low = self.high = 0.0
        self.others = self.counted = 0


@dataclass(frozen=True, slots=True)
class Processed:
    """Of one step: probabilities and who removed what, in the candidates' order, and what is not exact."""

    probabilities: tuple[float, ...]
    removed_by: tuple[str | None, ...]
    kept_count: int
    kept_mass: float
    stages: tuple[StageRecord, ...]
    raw_entropy_bits: float
    entropy_bits: float
    inexact: tuple[str, ...]


def processed(
    logprobs: list[float], chosen: int, vocabulary: int, decoding: Decoding, forced: bool = False
) -> Processed:
    """`logprobs` best first, `chosen` an index into them; `vocabulary` 0 where its size is unknown.

    A `forced` token is recorded as the settings see it, however improbable they make it.
    """
    raw = [math.exp(value) for value in logprobs]
    others = max(0, vocabulary - len(raw)) if vocabulary else 2**17
    rest = max(0.0, 1.0 - math.fsum(raw))
    rest = 0.0 if others == 0 or rest < 1e-6 else rest
    entropy = _least_entropy(raw, rest)
    bound = ("raw_entropy_bits",) if rest > 0 else ()
    if decoding.greedy and "repetition_penalty" not in decoding.active_stages():
        return _greedy(raw, 0 if forced else chosen, entropy, bound)
    state = _State(dict(enumerate(raw)), rest, rest, others, others if vocabulary else 0)
    for stage in decoding.active_stages():
        _apply(state, stage, decoding, complete=rest == 0)
        count = len(state.weights) + (state.counted if state.high > 0 else 0)
        state.stages.append(StageRecord(stage, count, min(1.0, state.mass)))
    if decoding.greedy:
        return _greedy(raw, 0 if forced else chosen, entropy, (*bound, "processed_probability"))
    return _read(state, raw, entropy, bound, None if forced else chosen)


def _greedy(raw: list[float], chosen: int, entropy: float, inexact: tuple[str, ...]) -> Processed:
    takes = StageRecord("greedy", 1, min(1.0, raw[chosen]))
    return Processed(
        tuple(float(i == chosen) for i in range(len(raw))),
        tuple(None if i == chosen else "greedy" for i in range(len(raw))),
        1, takes.kept_mass, (takes,), entropy, 0.0, inexact,
    )  # fmt: skip


def _read(
    state: _State, raw: list[float], entropy: float, bound: tuple[str, ...], chosen: int | None
) -> Processed:
    if (
        chosen is not None and chosen not in state.weights
    ):  # the server chose what our arithmetic removes: ours is the approximation
        state.weights[chosen] = raw[chosen]
        state.removed.pop(chosen, None)
        state.exact = False
    total = state.total
    probabilities = tuple(state.weights.get(i, 0.0) / total if total > 0 else 0.0 for i in range(len(raw)))
    spread = (state.high - state.low) / total if total > 0 else 0.0
    names = bound
    if not state.exact or spread > 1e-3:
        names += ("processed_probability", "kept_count", "kept_mass", "processed_entropy_bits")
    elif state.rest > 0:
        names += ("processed_entropy_bits",) + ("kept_count",) * (state.counted == 0)
    return Processed(
        probabilities,
        tuple(state.removed.get(i) for i in range(len(raw))),
        len(state.weights) + (state.counted if state.high > 0 else 0),
        min(1.0, state.mass),
        tuple(state.stages),
        entropy,
        _least_entropy(list(probabilities), state.rest / total if total > 0 else 0.0),
        names,
    )


def _apply(state: _State, stage: str, decoding: Decoding, complete: bool) -> None:
    """One stage; `complete` where the candidates are the whole vocabulary."""
    order = sorted(state.weights, key=lambda i: (-state.weights[i], i))
    if not order:
        return
    best, least, total = state.weights[order[0]], state.weights[order[-1]], state.total
    whole = state.high <= 0 or complete
    match stage:
        case "repetition_penalty":
            state.exact = False  # it needs logits, and the server gives none
        case "temperature":
            _temper(state, decoding.temperature, least)
        case "top_k":
            sure = whole or decoding.top_k <= len(order)
            if len(order) > decoding.top_k or state.high > 0:
                state.cut(order[: decoding.top_k], stage, sure)
        case "top_p":
            counts = [_reaching(state, order, decoding.top_p, end) for end in (state.low, state.high)]
            found = counts[0] or counts[1]
            if found:
                state.cut(order[:found], stage, counts[0] == counts[1])
            else:
                state.exact &= whole
                state.mass *= decoding.top_p if state.high > 0 else 1.0
        case "min_p":
            kept = [i for i in order if state.weights[i] >= decoding.min_p * best]
            if len(kept) < len(order) or state.high <= 0 or least < decoding.min_p * best:
                state.cut(kept, stage, sure=True)
            else:
                state.cut(kept, stage, sure=False)
        case "typical_p":
            _typical(state, order, decoding.typical_p, total, whole)


def _temper(state: _State, temperature: float, least: float) -> None:
    power = 1 / temperature
    peak = max(state.weights.values())
    rest, others = state.rest, state.others
    scaled = {i: (w / peak) ** power for i, w in state.weights.items()}
    if rest > 0 and least > 0 and others > 0:
        share, each = rest / peak, least / peak
        ends = sorted((others * (share / others) ** power, (share / each) * each**power))
        state.low, state.high = ends
    state.weights = scaled


def _reaching(state: _State, order: list[int], p: float, rest: float) -> int:
    """How many of the best reach the share `p`; 0 where the candidates do not."""
    total, sum_so_far = sum(state.weights.values()) + rest, 0.0
    for count, i in enumerate(order, 1):
        sum_so_far += state.weights[i]
        if sum_so_far >= p * total - 1e-12 * total:
            return count
    return 0 if rest > 0 else len(order)


def _typical(state: _State, order: list[int], p: float, total: float, whole: bool) -> None:
    bits = {i: -math.log(state.weights[i] / total) for i in order if state.weights[i] > 0}
    entropy = sum(state.weights[i] / total * value for i, value in bits.items())
    nearest = sorted(bits, key=lambda i: (abs(bits[i] - entropy), i))
    kept, sum_so_far = [], 0.0
    for i in nearest:
        kept.append(i)
        sum_so_far += state.weights[i]
        if sum_so_far >= p * total:
            break
    state.cut(kept, "typical_p", sure=whole)


def _least_entropy(shares: list[float], rest: float) -> float:
    """Bits; where there is a rest, its least: as few tokens as can carry it, each at most the last share."""
    known = -math.fsum(p * math.log(p) for p in shares if p > 0)
    least = min((p for p in shares if p > 0), default=1.0)
    beyond = -rest * math.log(min(least, rest)) if rest > 0 else 0.0
    return max(0.0, (known + beyond) / _LN2)
