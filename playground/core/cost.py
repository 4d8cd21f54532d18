"""What a forward costs in operations and in bytes read, and how far a device could go.

A matrix of P parameters takes 2 P operations a position (a multiplication and an addition); a query that
meets a key takes 2 d for the score and 2 d' for the mixing of the value, in each query head (as in Kaplan
et al. 2020, arXiv:2001.08361). The roofline is that of Williams et al. 2009 (doi:10.1145/1498765.1498785).
All of it is arithmetic on shapes; clocks and devices are measured elsewhere and handed in. Norms, biases,
softmax, activations and the folding of states are left out: together they are a few hundredths at most.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from playground.core.kv import CacheSpec

_TOKENS_LIMIT = 2**40


@dataclass(frozen=True, slots=True)
class Attention:
    """One layer that attends: operations for each (query, key) pair over all heads, and its window.

    `chunked` windows do not slide: a query meets the keys of its own chunk. `flops_per_cached` are taken
    by each cached position before it can be met: a latent is expanded anew in every forward.
    """

    flops_per_pair: int
    window: int | None = None
    chunked: bool = False
    flops_per_cached: int = 0

    def flops(self, tokens: int, reused: int = 0) -> int:
        """Of `tokens` new queries behind `reused` cached positions."""
        pairs = self._pairs(tokens + reused) - self._pairs(reused)
        return self.flops_per_pair * pairs + self.flops_per_cached * min(reused, self.window or reused)

    def _pairs(self, tokens: int) -> int:
        """Pairs of a query with a key at or before it: 1 + 2 + ... up to the window."""
        window = min(tokens, self.window or tokens)
        if not self.chunked or not window:
            return _triangle(window) + (tokens - window) * window
        return tokens // window * _triangle(window) + _triangle(tokens % window)


@dataclass(frozen=True, slots=True)
class Shape:
    """What the costs of a model hang on.

    `body_parameters` are the matrices that every position goes through (of a mixture of experts, those
    that act for one token), `head_parameters` the one that makes logits. `bytes_per_parameter` is of the
    weights; `cache` tells the bytes of keys and values. `idle_parameters` are the experts that one token
    leaves out, `expert_share` the share of experts that it takes.
    """

    body_parameters: int
    head_parameters: int
    bytes_per_parameter: float
    attention: tuple[Attention, ...]
    cache: CacheSpec
    idle_parameters: int = 0
    expert_share: float = 1.0

    def weight_bytes(self, positions: int) -> int:
        """Bytes of weights that a forward over `positions` reads, each once.

        Of experts an estimate: as if every position chose on its own and all alike, so that an expert is
        left out by all with probability (1 - share) ^ positions.
        """
        also = self.idle_parameters * (1 - (1 - self.expert_share) ** max(0, positions - 1))
        return round((self.body_parameters + self.head_parameters + also) * self.bytes_per_parameter)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one forward, or of several together: operations, and bytes that have to come from memory."""

    flops: int
    weight_bytes: int
    cache_bytes: int

    @property
    def bytes(self) -> int:
        """All bytes read."""
        return self.weight_bytes + self.cache_bytes

    @property
    def intensity(self) -> float:
        """Operations for each byte read."""
        return self.flops / self.bytes

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.flops + other.flops,
            self.weight_bytes + other.weight_bytes,
            self.cache_bytes + other.cache_bytes,
        )


def prefill_cost(shape: Shape, tokens: int, reused: int = 0, lanes: int = 1) -> Cost:
    """One forward over `tokens` new positions a row behind `reused` cached ones; logits of the last alone."""
    attention = sum(layer.flops(tokens, reused) for layer in shape.attention)
    matrices = 2 * (shape.body_parameters * tokens + shape.head_parameters)
    return Cost(
        lanes * (matrices + attention), shape.weight_bytes(tokens * lanes), _cache_bytes(shape, reused, lanes)
    )


def chunked_cost(shape: Shape, ends: Iterable[int], reused: int = 0) -> Cost:
    """A prefill in several forwards, of which each reads up to one of `ends`; weights are read in each."""
    parts = [prefill_cost(shape, end - begin, begin) for begin, end in pairwise((reused, *ends))]
    return sum(parts, Cost(0, 0, 0))


def decode_cost(shape: Shape, context_tokens: int, lanes: int = 1) -> Cost:
    """One decode step of `lanes` rows, each with `context_tokens` positions after it; weights are read once."""
    attention = sum(layer.flops(1, context_tokens - 1) for layer in shape.attention)
    matrices = 2 * (shape.body_parameters + shape.head_parameters)
    return Cost(
        lanes * (matrices + attention), shape.weight_bytes(lanes), _cache_bytes(shape, context_tokens, lanes)
    )


def crossover_tokens(shape: Shape) -> int | None:
    """The least prompt length at which attention takes as many operations as everything else in a prefill.

    With a operations a pair and b a position attention of n is a n (n + 1) / 2 and the rest about b n, so n
    is about 2 b / a - 1. None where the two never meet: no layer attends, or every window is short.
    """
    if not shape.attention or not _attention_leads(shape, _TOKENS_LIMIT):
        return None
    low, high = 0, 1
    while not _attention_leads(shape, high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _attention_leads(shape, middle) else (middle, high)
    return high


def _attention_leads(shape: Shape, tokens: int) -> bool:
    attention = sum(layer.flops(tokens) for layer in shape.attention)
    return attention >= 2 * (shape.body_parameters * tokens + shape.head_parameters)


def _cache_bytes(shape: Shape, tokens: int, lanes: int) -> int:
    return shape.cache.used_bytes(tokens, lanes) + (shape.cache.state_bytes(lanes) if tokens else 0)


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


@dataclass(frozen=True, slots=True)
class Device:
    """How fast a device reads memory and multiplies matrices, measured here or read in a datasheet."""

    bytes_per_second: float
    flops_per_second: float
    measured: bool = True


Limit = Literal["bandwidth", "compute", "overhead"]

OVERHEAD_BELOW = 0.5
"""Where a forward reaches less than this share of what the device allows, most of its time is neither."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one forward waited for.

    `floor_seconds` is the least it could take on the device; `share` that over the measured time.
    `bandwidth_share` (MBU) and `compute_share` (MFU) are bytes and operations a second over the device's.
    """

    limit: Limit
    floor_seconds: float
    share: float
    bandwidth_share: float
    compute_share: float


def ridge_intensity(device: Device) -> float:
    """Operations a byte at which a device is as busy reading as computing."""
    return device.flops_per_second / device.bytes_per_second


def attainable_flops_per_second(device: Device, intensity: float) -> float:
    """The roofline: bandwidth x intensity, up to the matrix rate."""
    return min(device.flops_per_second, device.bytes_per_second * intensity)


def verdict(cost: Cost, seconds: float, device: Device) -> Verdict:
    """What a forward of `cost` that took `seconds` waited for on `device`."""
    reading, computing = cost.bytes / device.bytes_per_second, cost.flops / device.flops_per_second
    floor = max(reading, computing)
    share = floor / seconds
    nearest: Limit = "bandwidth" if reading >= computing else "compute"
    limit: Limit = nearest if share >= OVERHEAD_BELOW else "overhead"
    return Verdict(limit, floor, share, reading / seconds, computing / seconds)
