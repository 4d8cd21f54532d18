"""Three curves: prefill against length, a decode step against context, a decode step against lanes.

Each is a generator of progress that ends in its value. A stop is seen between forwards, and the curve then
has the places it has; each has a limit in seconds, and what could not be measured within it is named. Counts
that are none are refused in a sentence (`InvalidSetting`) before anything is run.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from playground import catalog
from playground.core.control import Control
from playground.core.cost import Cost, Shape, chunked_cost, crossover_tokens, decode_cost
from playground.core.experiment import LaneCurve, PrefillCurve, Progressed, StepCurve, Timed
from playground.core.fit import quadratic_fit
from playground.engine.cache import tokens_held
from playground.engine.costing import config_shape, cost_shape
from playground.engine.model import LoadedModel
from playground.engine.places import Places, count, counts
from playground.engine.trial import STEPS, Trial, chunk_ends, in_a_sentence

PREFILL_LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)
STEP_CONTEXTS = (32, 128, 512, 1024, 2048, 4096)
LANES = (1, 2, 4, 8, 16)
REPEATS = 3
REPEATS_LIMIT = 100


@in_a_sentence
def prefill_curve(
    model: LoadedModel,
    *,
    lengths: Sequence[int] = PREFILL_LENGTHS,
    repeats: int = REPEATS,
    control: Control | None = None,
    seconds_limit: float = 90.0,
) -> Iterator[Progressed | PrefillCurve]:
    """Seconds of a prefill against its length, read as a run reads it: in chunks, one row of logits each."""
    trial = Trial(model, control, seconds_limit)
    places = Places(trial, counts("lengths", lengths))
    count("repeats", repeats, REPEATS_LIMIT)

    def once(n: int) -> list[float]:
        return [trial.prefill(n)[1]]

    trial.warm_up()
    yield from places.measure(once, repeats)
    shape = cost_shape(model)
    points = places.points()
    curve = quadratic_fit([(point.n, min(point.seconds)) for point in points])
    yield PrefillCurve(
        conditions=trial.conditions(),
        points=points,
        costs=_costs(shape, points, lambda shape, n: chunked_cost(shape, chunk_ends(n))),
        curve=curve,
        fitted="too_few" if curve is None else "separable" if curve.separable else "not_separable",
        crossover_tokens=crossover_tokens(shape) if shape is not None else None,
        reference_crossover_tokens=reference_crossover_tokens(),
        absent=places.absent(),
    )


@in_a_sentence
def step_curve(
    model: LoadedModel,
    *,
    contexts: Sequence[int] = STEP_CONTEXTS,
    repeats: int = REPEATS,
    control: Control | None = None,
    seconds_limit: float = 90.0,
) -> Iterator[Progressed | StepCurve]:
    """Seconds of a decode step against the positions it looks back at."""
    trial = Trial(model, control, seconds_limit)
    places = Places(trial, counts("contexts", contexts), ahead=STEPS)
    count("repeats", repeats, REPEATS_LIMIT)
    whole: Any = None

    def once(n: int) -> list[float]:
        nonlocal whole
        before = max(1, n - 1 - STEPS // 2)
        if whole is None or tokens_held(whole) < before:
            whole = trial.prefill(before, whole)[0]
        cut = trial.fork(whole, before)
        cache = trial.prefill(before)[0] if cut is None else cut
        return trial.steps(cache, STEPS)

    trial.warm_up()
    yield from places.measure(once, repeats)
    points = places.points()
    yield StepCurve(
        trial.conditions(), points, _costs(cost_shape(model), points, decode_cost), places.absent()
    )


@in_a_sentence
def lane_curve(
    model: LoadedModel,
    *,
    lanes: Sequence[int] = LANES,
    context_tokens: int = 64,
    repeats: int = REPEATS,
    control: Control | None = None,
    seconds_limit: float = 60.0,
) -> Iterator[Progressed | LaneCurve]:
    """Seconds of a decode step against lanes: the weights are read once for all of them."""
    trial = Trial(model, control, seconds_limit)
    context = min(count("context_tokens", context_tokens), trial.context - STEPS)
    count("repeats", repeats, REPEATS_LIMIT)
    places = Places(trial, counts("lanes", lanes), rows_of=lambda n: (context + STEPS, n))
    whole: Any = None
    before = max(1, context - 1 - STEPS // 2)

    def once(n: int) -> list[float]:
        nonlocal whole
        whole = trial.prefill(before)[0] if whole is None else whole
        cut = trial.fork(whole, before, n)
        cache = trial.spread(trial.prefill(before)[0], n) if cut is None else cut
        return trial.steps(cache, STEPS, n)

    trial.warm_up()
    yield from places.measure(once, repeats)
    points = places.points()
    costs = _costs(cost_shape(model), points, lambda shape, n: decode_cost(shape, context, n))
    yield LaneCurve(trial.conditions(), context, points, costs, places.absent())


def reference_crossover_tokens() -> float:
    """Where attention takes as many operations as everything else in Llama-3.1-8B, from its config."""
    known = catalog.config("llama-3.1-8b")
    shape = config_shape(known.shape) if known is not None else None
    found = crossover_tokens(shape) if shape is not None else None
    assert found is not None, "the catalog has the config, and every layer of it attends to everything"
    return found


def _costs(
    shape: Shape | None, points: Sequence[Timed], of: Callable[[Shape, int], Cost]
) -> tuple[Cost, ...]:
    return tuple(of(shape, point.n) for point in points) if shape is not None else ()
