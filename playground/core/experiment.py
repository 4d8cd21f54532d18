"""What the experiments on cost find, as values: each tells what was measured and what was computed.

Every field but the settings of the experiment carries its origin: `measured` on the device with a clock
or a counter, `computed` exactly from shapes and counts, `estimated` where a model of the device or of what
is to come stands behind it. None is unknown. Knows no engine and no figure.
"""

from dataclasses import dataclass, field, fields
from statistics import median
from typing import Any, Literal

from playground.core.cost import Cost, Device, Verdict
from playground.core.fit import Curve

Origin = Literal["measured", "computed", "estimated"]
Missing = Literal["context", "time", "memory", "stopped"]
"""Why a planned length is not among the points: the model's context, the time budget, memory, a stop."""


def _origin(origin: Origin, **default: Any) -> Any:
    return field(metadata={"origin": origin}, **default)


@dataclass(frozen=True, slots=True)
class Conditions:
    """What was measured on.

    `device` is its name for people. `warm_up_seconds` is the first forward, which ran apart and is in no
    other time; `warm_before` tells that the model had run before, so that it holds no one-time work.
    """

    model: str
    device: str
    dtype: str
    threads: int | None
    warm_up_seconds: float | None = _origin("measured")
    warm_before: bool = False


@dataclass(frozen=True, slots=True)
class Timed:
    """One place of a curve: `n` is what varies, `seconds` every measurement there, in order."""

    n: int
    seconds: tuple[float, ...] = _origin("measured")

    @property
    def median_seconds(self) -> float:
        """The middle one."""
        return median(self.seconds)


@dataclass(frozen=True, slots=True)
class Absent:
    """A planned place that was not measured, and why."""

    n: int
    reason: Missing


@dataclass(frozen=True, slots=True)
class Progressed:
    """An experiment is under way: `done` of `total` measurements, the latest at `n` in `seconds`."""

    done: int
    total: int
    n: int | None = None
    seconds: float | None = None


Fitted = Literal["separable", "not_separable", "too_few"]

Rechecked = Literal["recheck_equal", "recheck_rounding", "recheck_other"]
"""Recomputed keys and values: the same to the last bit, apart by rounding alone, or by more than it explains."""


@dataclass(frozen=True, slots=True)
class PrefillCurve:
    """Prefill time against prompt length: `points[i].n` are tokens, `costs[i]` its arithmetic.

    `costs` is empty where the model's shape is not known. `curve` splits the time into constant, linear
    and quadratic part, through the fastest measurement of each length (whatever else runs on a machine
    only adds), and `fitted` tells whether the last can be told apart. `crossover_tokens` is where
    attention takes as many operations as everything else, None where it never does.
    """

    conditions: Conditions
    points: tuple[Timed, ...] = _origin("measured")
    costs: tuple[Cost, ...] = _origin("computed")
    curve: Curve | None = _origin("computed")
    fitted: Fitted = _origin("computed")
    crossover_tokens: float | None = _origin("computed")
    reference_crossover_tokens: float = _origin("computed")
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True)
class StepCurve:
    """Seconds of one decode step against context: `points[i].n` are positions in the cache after it."""

    conditions: Conditions
    points: tuple[Timed, ...] = _origin("measured")
    costs: tuple[Cost, ...] = _origin("computed")
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneCurve:
    """Seconds of one decode step against lanes: `points[i].n` lanes, each at `context_tokens` positions."""

    conditions: Conditions
    context_tokens: int
    points: tuple[Timed, ...] = _origin("measured")
    costs: tuple[Cost, ...] = _origin("computed")
    absent: tuple[Absent, ...] = ()


@dataclass(frozen=True, slots=True)
class OneByOne:
    """The same prompt of `tokens` read in one prefill and token by token.

    `max_logit_difference` is between the two rows of logits after the last token; `same_choice` whether
    their most probable token is one. `weight_reads` is how often the weights had to come from memory.
    """

    conditions: Conditions
    tokens: int
    prefill_seconds: tuple[float, ...] = _origin("measured")
    one_by_one_seconds: tuple[float, ...] = _origin("measured")
    max_logit_difference: float = _origin("measured")
    same_choice: bool = _origin("measured")
    prefill_weight_reads: int = _origin("computed", default=1)
    one_by_one_weight_reads: int = _origin("computed", default=0)

    @property
    def ratio(self) -> float:
        """How many times as long it took token by token, medians."""
        return median(self.one_by_one_seconds) / median(self.prefill_seconds)


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """One kind of forward on the roofline: `attainable_flops_per_second` is the roof above it.

    `tokens` are those of the prompt, or the positions that a decode step looks back at.
    """

    name: Literal["prefill", "decode"]
    tokens: int
    seconds: float = _origin("measured")
    cost: Cost = _origin("computed")
    flops_per_second: float = _origin("measured")
    attainable_flops_per_second: float = _origin("estimated")
    verdict: Verdict = _origin("estimated")
    lanes: int = 1

    @property
    def intensity(self) -> float:
        """Operations for each byte that has to be read."""
        return self.cost.intensity


@dataclass(frozen=True, slots=True)
class Roofline:
    """Prefill and decode under the roof of a device; `device.measured` tells where the roof comes from."""

    conditions: Conditions
    device: Device = _origin("measured")
    points: tuple[RooflinePoint, ...] = _origin("computed")


@dataclass(frozen=True, slots=True)
class KvRecheck:
    """Keys and values that a run had kept, against the same ones computed anew with the whole text.

    `differences` is the largest of each layer that keeps keys and values; `largest_value` gives the scale.
    `positions` were compared in each of `layers`. `sentence` is the finding, by whose name a page says it.
    """

    conditions: Conditions
    positions: int
    layers: int
    differences: tuple[float, ...] = _origin("measured")
    largest_value: float = _origin("measured")
    sentence: Rechecked = _origin("computed")

    @property
    def largest_difference(self) -> float:
        """Over all layers; 0 where they are equal to the last bit."""
        return max(self.differences, default=0.0)


@dataclass(frozen=True, slots=True)
class Forecast:
    """How far a run could go on: tokens a lane, and seconds at the pace of its latest steps.

    `limit` is what comes first. Memory is estimated: only the growth of the cache is counted against
    `free_bytes`, and others may take of it too.
    """

    tokens_now: int = _origin("measured")
    lanes: int = _origin("measured")
    context_tokens: int | None = _origin("measured")
    free_bytes: int | None = _origin("measured")
    bytes_next_token: int | None = _origin("computed")
    tokens_until_context: int | None = _origin("computed")
    tokens_until_memory: int | None = _origin("estimated")
    seconds_until_context: float | None = _origin("estimated")
    seconds_until_memory: float | None = _origin("estimated")
    limit: Literal["context", "memory"] | None = _origin("estimated")


PartName = Literal["weights", "kv", "state", "logits", "rest"]


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """A share of the peak, and how it is known; `bytes` None where it is not.

    `predicted_bytes` are the same without a measurement: computed, or estimated where `predicted_origin` says so.
    """

    name: PartName
    bytes: int | None
    origin: Origin
    predicted_bytes: int | None = None
    predicted_origin: Origin = "computed"


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The most memory that a prefill of `tokens` held, told apart.

    `total_origin` is `measured` where the device counts it (CUDA: the allocator's peak; CPU: the process's
    resident memory around the forward, which the system rounds to pages and other threads add to).
    `predicted_bytes` is the sum of what was computed and estimated. `logits_of_all_bytes` is what the logits of
    every position would take in fp32: the hidden peak of a prefill that asks for them; ours asks for
    `logit_rows`. `all_logits_bytes` is the whole peak of one that did ask, where that was measured too.
    """

    conditions: Conditions
    tokens: int
    logit_rows: int
    parts: tuple[MemoryPart, ...] = _origin("computed")
    total_bytes: int | None = _origin("measured")
    total_origin: Origin = "measured"
    logits_of_all_bytes: int = _origin("computed", default=0)
    predicted_bytes: int | None = _origin("estimated", default=None)
    all_logits_bytes: int | None = _origin("measured", default=None)


Experiment = PrefillCurve | StepCurve | LaneCurve | OneByOne | Roofline | KvRecheck | Forecast | PeakMemory


def origins(value: Any) -> dict[str, Origin]:
    """The origin of each field of `value` that has one."""
    return {f.name: f.metadata["origin"] for f in fields(value) if "origin" in f.metadata}
