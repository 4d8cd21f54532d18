"""The race of one greedy run with the KV cache against the same run without: counts and result.

One function, `work`, counts a live race and the figures of a text alike. Both sides are ordinary runs
of events; between them stand ticks, one for each token that both have chosen. Knows records only.

The unit of every count is one head of one layer that attends to the whole text before it: a position's
key and value are one K/V computation, and a query meeting a key is one dot product.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from playground.core.compare import first_divergence
from playground.core.decoding import InvalidSetting
from playground.core.events import Event
from playground.core.metrics import timing
from playground.core.report import failure
from playground.core.run import Run, advance

UNIT = "one head of one layer that attends to the whole text before it"
WITH, WITHOUT = ".cached", ".uncached"
"""Endings of the two run ids."""

TOKENS_LIMIT = 10**9
"""Of a prompt and of an answer that are counted: far above any context, and the counts stay numbers."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one side computes for one head of one layer.

    `needed` are the dot products of every position with itself and all before it, once;
    `computed` also counts the ones that were computed again.
    """

    kv_computed: int
    attention_dot_products_needed: int
    attention_dot_products_computed: int


def work(prompt_tokens: int, new_tokens: int, *, cached: bool) -> Work:
    """The work of choosing `new_tokens` after a prompt of `prompt_tokens`.

    n tokens take n forwards, the first over the p positions of the prompt, each later one with one
    position more: p, p + 1, ..., L with L = p + n - 1 (the last token chosen is never read). A text of m
    positions needs T2(m) = m (m + 1) / 2 dot products, since position i meets i keys.

        K/V computations       cached L              uncached p + (p + 1) + ... + L = T2(L) - T2(p - 1)
        dot products needed    T2(L) on both sides
        dot products computed  cached T2(L)          uncached T2(p) + ... + T2(L) = T3(L) - T3(p - 1)

    with T3(m) = m (m + 1) (m + 2) / 6, the sum of the first m T2. For a one-token prompt that is n against
    n (n + 1) / 2, and n (n + 1) / 2 against n (n + 1) (n + 2) / 6. Raises `InvalidSetting` for counts
    below 1 and 0, above `TOKENS_LIMIT`, and for what is no whole number.
    """
    if not _is_count(prompt_tokens, 1) or not _is_count(new_tokens, 0):
        raise InvalidSetting(
            "A race is counted in whole tokens, from one prompt token and from no new token upwards to at most "
            f"{TOKENS_LIMIT:,} of each."
        )
    if new_tokens == 0:
        return Work(0, 0, 0)
    last, before = prompt_tokens + new_tokens - 1, prompt_tokens - 1
    needed = _pairs(last)
    if cached:
        return Work(last, needed, needed)
    return Work(needed - _pairs(before), needed, _triples(last) - _triples(before))


def _is_count(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= TOKENS_LIMIT


def _pairs(m: int) -> int:
    return m * (m + 1) // 2


def _triples(m: int) -> int:
    return m * (m + 1) * (m + 2) // 6


@dataclass(frozen=True, slots=True)
class Ticked:
    """Both sides have chosen their token of `step`.

    `equal` is None after the first step at which they chose differently: from there on they read
    different texts, and nothing is compared. `logit_difference` is the largest absolute difference over
    the vocabulary; at the step where they part it is still of the same text.
    """

    step: int
    equal: bool | None
    logit_difference: float | None


@dataclass(frozen=True, slots=True)
class Raced:
    """The end of a race, as far as both sides came.

    `compared_steps` counts the steps at which both read the same text. `tokens_equal` is None where
    nothing was compared. Work is counted for each side's own tokens. A step's seconds are those of
    decode steps, the first token's choice left out.
    """

    cached: Work
    uncached: Work
    tokens_equal: bool | None
    first_divergence: int | None
    max_logit_difference: float | None
    compared_steps: int


@dataclass(slots=True)
class Race:
    """A race as a value: two runs, the ticks between them, and the result once there is one."""

    cached: Run = field(default_factory=Run)
    uncached: Run = field(default_factory=Run)
    ticks: list[Ticked] = field(default_factory=list)
    raced: Raced | None = None


Item = Event | Ticked | Raced
"""What a race yields, in order."""


def follow(race: Race, item: Item) -> Race:
    """Give `race` one more item, in place, and return it."""
    if isinstance(item, Ticked):
        race.ticks.append(item)
    elif isinstance(item, Raced):
        race.raced = item
    else:
        advance(race.uncached if item.run.endswith(WITHOUT) else race.cached, item)
    return race


def result(race: Race) -> Raced:
    """The comparison of what there is, also in the middle of a race or after a stop."""
    compared = [tick for tick in race.ticks if tick.logit_difference is not None]
    ids, others = _ids(race.cached), _ids(race.uncached)
    parted = next((tick.step for tick in race.ticks if tick.equal is False), None)
    if parted is None and race.cached.done and race.uncached.done and not _stopped(race):
        parted = first_divergence(ids, others)
    return Raced(
        cached=_work(race.cached, cached=True),
        uncached=_work(race.uncached, cached=False),
        tokens_equal=(parted is None) if race.ticks else None,
        first_divergence=parted,
        max_logit_difference=max((tick.logit_difference or 0.0 for tick in compared), default=None),
        compared_steps=len(compared),
    )


def race_report(race: Race) -> dict[str, Any]:
    """The JSON object of `first-token race`."""
    found = race.raced or result(race)
    return {
        "cached": _side(race.cached, found.cached),
        "uncached": _side(race.uncached, found.uncached),
        "tokens_equal": found.tokens_equal,
        "first_divergence": found.first_divergence,
        "max_logit_difference": found.max_logit_difference,
        "compared_steps": found.compared_steps,
        "ticks": [tick.equal for tick in race.ticks],
        "logit_differences": [tick.logit_difference for tick in race.ticks],
        "unit": UNIT,
        "prompt_tokens": len(race.cached.prompt_ids),
        "notes": [note.text for note in race.cached.started.notes] if race.cached.started else [],
        "model": asdict(race.cached.started.model) if race.cached.started else None,
    }


def _side(run: Run, counted: Work) -> dict[str, Any]:
    if not run.lanes:
        return {"step_seconds": [], **asdict(counted), "error": run.failed.message if run.failed else None}
    lane = run.lanes[0]
    times = timing(run, lane)
    return {
        "step_seconds": times.step_seconds,
        **asdict(counted),
        "prefill_seconds": times.prefill_seconds,
        "token_ids": lane.token_ids,
        "text": lane.text,
        "finish_reason": lane.finish_reason,
        "error": failure(run, lane),
    }


def _ids(run: Run) -> list[int]:
    return run.lanes[0].token_ids if run.lanes else []


def _work(run: Run, *, cached: bool) -> Work:
    tokens = len(run.prompt_ids)
    return work(tokens, len(_ids(run)), cached=cached) if tokens else Work(0, 0, 0)


def _stopped(race: Race) -> bool:
    ends = [run.lanes[0].finish_reason for run in (race.cached, race.uncached) if run.lanes]
    return any(end in ("cancelled", "error", None) for end in ends)
