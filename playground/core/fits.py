"""What fits into a memory: weights, the cache of every sequence, and an estimate of activations.

Arithmetic on a config. Activations are a guess of their widest moment and are marked so; what a driver, a
framework and fragmentation take is not counted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from playground.core import peak
from playground.core.config import is_count, text_config
from playground.core.kv import CacheSpec

PREFILL_TOKENS = 2048
"""Prompt tokens in one forward, of all sequences together, for the estimate of activations."""

ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True)
class Need:
    """Memory of a deployment. `activation_bytes` is an estimate; both are None where they are not known."""

    weights_bytes: int | None
    cache_bytes: int
    activation_bytes: int | None

    @property
    def total_bytes(self) -> int | None:
        """All of it; None where the weights are not known. Activations that are not known count as none."""
        if self.weights_bytes is None:
            return None
        return self.weights_bytes + self.cache_bytes + (self.activation_bytes or 0)


@dataclass(frozen=True, slots=True)
class Fit:
    """`need` against a memory.

    `largest_sequences` at the tokens asked for and `largest_tokens` at the sequences asked for are 0 where
    nothing fits, and None where the weights are not known or the limit asked for still fits.
    """

    memory_bytes: int
    need: Need
    fits: bool | None
    largest_sequences: int | None
    largest_tokens: int | None


class Plan:
    """What a config needs at any number of tokens and sequences; built once, asked often."""

    def __init__(self, config: Mapping[str, Any], spec: CacheSpec, weights_bytes: int | None) -> None:
        self._config, self._weights_bytes = text_config(config), weights_bytes
        self._growth, self._state_bytes = spec.growth(), spec.state_bytes()

    def need(self, tokens: int, sequences: int) -> Need:
        """What `sequences` sequences of `tokens` tokens need, constant states included."""
        grown = sum(each * min(tokens, window or tokens) for window, each in self._growth.items())
        cache = (grown + self._state_bytes) * sequences
        return Need(self._weights_bytes, cache, activation_bytes(self._config, tokens, sequences))

    def fit(self, memory_bytes: int, tokens: int, sequences: int, limits: tuple[int, int]) -> Fit:
        """Whether it fits into `memory_bytes`; `limits` are the most tokens and sequences that are tried."""
        asked = self.need(tokens, sequences)
        if asked.total_bytes is None:
            return Fit(memory_bytes, asked, None, None, None)

        def room(n_tokens: int, n_sequences: int) -> bool:
            return (self.need(n_tokens, n_sequences).total_bytes or 0) <= memory_bytes

        return Fit(
            memory_bytes,
            asked,
            room(tokens, sequences),
            largest(lambda n: room(tokens, n), limits[1]),
            largest(lambda n: room(n, sequences), limits[0]),
        )


def largest(holds: Callable[[int], bool], limit: int) -> int | None:
    """The largest n from 0 to `limit` that holds, where n holds all smaller do; None where `limit` does."""
    low, high = 0, limit
    if holds(limit):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def activation_bytes(config: Mapping[str, Any], tokens: int, sequences: int) -> int | None:
    """An estimate of the widest moment of a forward, with a row of logits for each sequence.

    None where the config does not tell the widths.
    """
    found = widths(config)
    if found is None:
        return None
    positions = max(sequences, min(PREFILL_TOKENS, tokens * sequences))
    logits = peak.logits_bytes(sequences, found.vocabulary)
    return peak.activation_bytes(positions, found.hidden, found.inner, ACTIVATION_BYTES) + logits


@dataclass(frozen=True, slots=True)
class Widths:
    """Of a model: its stream, its feed-forward (all experts of one token), its vocabulary."""

    hidden: int
    inner: int
    vocabulary: int


def widths(config: Mapping[str, Any]) -> Widths | None:
    """From a config; None where it does not tell them."""
    config = text_config(config)
    hidden, vocabulary = _first(config, "hidden_size", "n_embd", "d_model"), _first(config, "vocab_size")
    if hidden is None or vocabulary is None:
        return None
    inner = _first(config, "intermediate_size", "n_inner", "ffn_dim") or 4 * hidden
    return Widths(hidden, inner * _experts(config), vocabulary)


def _experts(config: Mapping[str, Any]) -> int:
    """Experts that act for one token where the feed-forward is as wide as one expert; else 1."""
    each = _first(config, "num_experts_per_tok") or 1
    return each if _first(config, "moe_intermediate_size") is None else 1


def _first(config: Mapping[str, Any], *names: str) -> int | None:
    return next((config[name] for name in names if is_count(config.get(name))), None)
