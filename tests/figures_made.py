"""Values for figures that were never measured: their numbers agree with each other and with nothing else."""

from collections.abc import Callable
from typing import Any

from playground import catalog
from playground.core.cost import (
    Attention,
    Device,
    Shape,
    attainable_flops_per_second,
    crossover_tokens,
    decode_cost,
    prefill_cost,
    verdict,
)
from playground.core.experiment import (
    Absent,
    Conditions,
    LaneCurve,
    MemoryPart,
    OneByOne,
    PeakMemory,
    PrefillCurve,
    Roofline,
    RooflinePoint,
    StepCurve,
    Timed,
)
from playground.core.fit import quadratic_fit
from playground.core.fits import Plan
from playground.core.holding import Holding, KindOfLayer
from playground.core.kv import CacheSpec, cache_spec
from playground.core.request import ModelFacts
from playground.views.figures.capacity import CAPACITY, Capacity
from playground.views.figures.chart import Chart
from playground.views.figures.drilldown import DRILLDOWN, Drilldown
from playground.views.figures.ghosts import GHOSTS, Ghosts
from playground.views.figures.growth import GROWTH, Growth
from playground.views.figures.held import HELD
from playground.views.figures.lanes import LANES
from playground.views.figures.one_by_one import ONE_BY_ONE
from playground.views.figures.peak import PEAK
from playground.views.figures.phases import PHASES, Phases
from playground.views.figures.prefill import PREFILL
from playground.views.figures.roofline import ROOFLINE
from playground.views.figures.steps import STEPS

HOSTILE = "<img src=x onerror=alert(1)>${alert(2)}{{3}}"
"""A model's name, which is whatever somebody wrote into a file."""

CONDITIONS = Conditions("tests/made", "CPU, 2 cores", "float32", 1, 0.2)
DEVICE = Device(26e9, 1.9e11)
LENGTHS = (32, 128, 512, 1024, 2048, 4096)
WEIGHTS_BYTES = 16_060_522_496


def cache_of(name: str, dtype: str = "bfloat16") -> CacheSpec:
    """The cache of a model of the catalog."""
    known = catalog.config(name)
    assert known is not None, name
    return cache_spec(known.shape, dtype)


SHAPE = Shape(106_000_000, 28_300_000, 4.0, (Attention(2304),) * 30, cache_of("smollm2-135m", "float32"))


def prefill_seconds(tokens: int) -> float:
    """A clean curve: constant, linear and quadratic part."""
    return 0.02 + 1.3e-3 * tokens + 9e-8 * tokens**2


def prefill_curve(**changed: Any) -> PrefillCurve:
    """Six lengths whose quadratic part stands out."""
    points = tuple(Timed(n, (prefill_seconds(n),) * 3) for n in LENGTHS)
    fitted = quadratic_fit([(p.n, seconds) for p in points for seconds in p.seconds])
    made: dict[str, Any] = {
        "points": points, "costs": tuple(prefill_cost(SHAPE, n) for n in LENGTHS), "curve": fitted,
        "fitted": "separable", "crossover_tokens": crossover_tokens(SHAPE), "reference_crossover_tokens": 63_487.0,
    }  # fmt: skip
    return PrefillCurve(CONDITIONS, **made | changed)


def roofline(device: Device, prefill_seconds: float, decode_seconds: float) -> Roofline:
    """Two forwards of 512 tokens that took these times."""
    points = (
        _point("prefill", prefill_seconds, prefill_cost(SHAPE, 512), device),
        _point("decode", decode_seconds, decode_cost(SHAPE, 512), device),
    )
    return Roofline(CONDITIONS, device, points)


def _point(name: Any, seconds: float, cost: Any, device: Device) -> RooflinePoint:
    return RooflinePoint(
        name, 512, seconds, cost, cost.flops / seconds, attainable_flops_per_second(device, cost.intensity),
        verdict(cost, seconds, device),
    )  # fmt: skip


def llama_capacity(**changed: Any) -> Capacity:
    """Llama-3.1-8B in 16 bits on 80 GB, for 32 users of 4,096 tokens."""
    config = catalog.config("llama-3.1-8b")
    assert config is not None
    made: dict[str, Any] = {
        "model": HOSTILE, "device": "80 GB", "memory_bytes": 80 * 10**9, "users": 32, "context": 4096,
        "plan": Plan(config.shape, cache_of("llama-3.1-8b"), WEIGHTS_BYTES), "context_limit": 131_072,
    }  # fmt: skip
    return Capacity(**made | changed)


_STEPS = tuple(Timed(n, (0.031 + 7e-6 * n, 0.032 + 7e-6 * n, 0.033 + 7e-6 * n)) for n in LENGTHS)
_LANES = tuple(Timed(n, (0.03 + 0.0015 * n,)) for n in (1, 2, 4, 8, 16))
_PARTS = (
    MemoryPart("weights", 538_000_000, "measured", 538_000_000),
    MemoryPart("kv", 94_371_840, "measured", 94_371_840), MemoryPart("logits", 196_608, "computed", 196_608),
    MemoryPart("rest", 120 << 20, "measured", 9 << 20, "estimated"),
)  # fmt: skip
_KINDS = (
    KindOfLayer("full", 12, None, 30 << 20, 0, 30 << 20, 64 << 20, 0),
    KindOfLayer("sliding", 6, 128, 10 << 20, 0, 9 << 20, 10 << 20, 0),
    KindOfLayer("state-space", 6, None, 0, 2 << 20, 0, 0, 2 << 20),
)
_LAYERS = (
    KindOfLayer("full", 1, None, 2_621_440, 0, 2_621_440, 5 << 20, 0),
    KindOfLayer("none", 1, None, 0, 0),
)

MADE: dict[str, tuple[Chart[Any], Callable[[], Any]]] = {
    "prefill": (PREFILL, prefill_curve),
    "prefill, cut short": (
        PREFILL,
        lambda: prefill_curve(fitted="not_separable", crossover_tokens=None, absent=(Absent(8192, "time"),)),
    ),
    "steps": (STEPS, lambda: StepCurve(CONDITIONS, _STEPS, tuple(decode_cost(SHAPE, n) for n in LENGTHS))),
    "lanes": (LANES, lambda: LaneCurve(CONDITIONS, 128, _LANES, ())),
    "one by one": (
        ONE_BY_ONE,
        lambda: OneByOne(CONDITIONS, 256, (0.35, 0.36), (8.1, 8.0), 3.1e-5, True, 1, 256),
    ),
    "roofline": (ROOFLINE, lambda: roofline(DEVICE, 0.95, 0.034)),
    "roofline, far below": (ROOFLINE, lambda: roofline(Device(4e12, 8e14), 0.02, 0.012)),
    "phases": (PHASES, lambda: (Phases(39, 37, 0.099, 1.31), Phases(100, 500, 0.17, 17.9, "estimated"))),
    "growth": (GROWTH, lambda: Growth(HOSTILE, cache_of("gpt-oss-120b"), 4096)),
    "ghosts": (GHOSTS, lambda: Ghosts(HOSTILE, cache_of("llama-3.1-8b"), 4096, 32)),
    "capacity": (CAPACITY, llama_capacity),
    "drilldown": (DRILLDOWN, lambda: Drilldown(HOSTILE, cache_of("llama-3.1-8b"))),
    "peak": (
        PEAK,
        lambda: PeakMemory(
            CONDITIONS, 2048, 1, _PARTS, 760 << 20, "measured", 402_653_184, 620 << 20, 1150 << 20
        ),
    ),
    "peak, estimated": (
        PEAK, lambda: PeakMemory(CONDITIONS, 2048, 1, _PARTS[1:3], 620 << 20, "estimated", 402_653_184)
    ),
    "held": (
        HELD,
        lambda: Holding(
            ModelFacts("tests/made", None, "cpu", "float32", 100, 1000), 1, 1200, 39, 30 << 20, 64 << 20, 30 << 20,
            2 << 20, 2 << 20, (), _KINDS, _LAYERS,
        ),
    ),
}  # fmt: skip
