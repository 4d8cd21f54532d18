"""Experiments on what a forward costs: each is a generator of progress that ends in its value.

Here are those that set two ways side by side; the curves stand in `curves`, the peak of memory in
`peaking`. A stop is seen between forwards; an experiment that has nothing to show by then ends without a
value. Counts that are none are refused in a sentence (`InvalidSetting`) before anything is run. Values and
their meaning stand in `core.experiment`, clocks and caches in `trial`. Knows no page.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import torch

from playground.core.control import Control
from playground.core.cost import (
    Device,
    Shape,
    attainable_flops_per_second,
    chunked_cost,
    decode_cost,
    verdict,
)
from playground.core.experiment import (
    Experiment,
    KvRecheck,
    OneByOne,
    Progressed,
    Roofline,
    RooflinePoint,
    Timed,
)
from playground.engine.cache import keys_and_values
from playground.engine.costing import cost_shape
from playground.engine.curves import REPEATS, REPEATS_LIMIT, lane_curve, prefill_curve, step_curve
from playground.engine.model import LoadedModel
from playground.engine.peaking import peak_memory
from playground.engine.places import count, counts
from playground.engine.probe import probe
from playground.engine.trial import STEPS, CannotMeasure, Trial, chunk_ends, in_a_sentence, rounds

__all__ = [
    "EXPERIMENTS", "CannotMeasure", "kv_recheck", "lane_curve", "one_by_one", "peak_memory", "prefill_curve",
    "roofline", "step_curve",
]  # fmt: skip

_ROUNDING = {"float32": 1e-4}
_ROUNDING_16_BIT = 0.05
"""Largest difference, as a share of the largest value, that sums in another order explain."""


@in_a_sentence
def one_by_one(
    model: LoadedModel,
    *,
    tokens: int = 64,
    repeats: int = REPEATS,
    control: Control | None = None,
) -> Iterator[Progressed | OneByOne]:
    """The same prompt in one prefill and token by token, in turn; raises `Stopped`."""
    trial = Trial(model, control, float("inf"))
    tokens = min(count("tokens", tokens), trial.context)
    count("repeats", repeats, REPEATS_LIMIT)
    trial.warm_up()
    times: tuple[list[float], list[float]] = ([], [])
    rows: list[Any] = [None, None]
    for turn in range(repeats):
        for way in (0, 1) if turn % 2 == 0 else (1, 0):
            seconds, rows[way] = _read(trial, tokens) if way == 0 else _read_singly(trial, tokens)
            times[way].append(seconds)
            yield Progressed(sum(map(len, times)), 2 * repeats, tokens, seconds)
    one, other = rows
    yield OneByOne(
        conditions=trial.conditions(),
        tokens=tokens,
        prefill_seconds=tuple(times[0]),
        one_by_one_seconds=tuple(times[1]),
        max_logit_difference=model.turns.take(lambda: _largest(one, other)),
        same_choice=model.turns.take(lambda: bool((one.argmax(-1) == other.argmax(-1)).all())),
        prefill_weight_reads=len(chunk_ends(tokens)),
        one_by_one_weight_reads=tokens,
    )


@in_a_sentence
def roofline(
    model: LoadedModel,
    *,
    prompt_tokens: int = 256,
    lanes: Sequence[int] = (1,),
    repeats: int = REPEATS,
    control: Control | None = None,
) -> Iterator[Progressed | Roofline]:
    """A prefill and decode steps behind it under the measured roof of the device; raises `Stopped`.

    Refuses with `CannotMeasure` a model whose operations cannot be counted.
    """
    shape = cost_shape(model)
    if shape is None:
        raise CannotMeasure(
            "The operations of this model cannot be counted, so it has no place on a roofline."
        )
    trial = Trial(model, control, float("inf"))
    prompt = max(1, min(count("prompt_tokens", prompt_tokens), trial.context - STEPS))
    lanes = counts("lanes", lanes)
    count("repeats", repeats, REPEATS_LIMIT)
    trial.warm_up()
    device = probe(model)
    ways: list[_Way] = [("prefill", 1), *(("decode", n) for n in lanes)]
    times: list[list[float]] = [[] for _ in ways]
    for done, (place, _) in enumerate(order := rounds(range(len(ways)), repeats), start=1):
        name, rows = ways[place]
        cache, seconds, _ = trial.prefill(prompt)
        if name == "decode":
            times[place] += trial.steps(trial.spread(cache, rows), STEPS, rows)
        else:
            times[place].append(seconds)
        yield Progressed(done, len(order), prompt, times[place][-1])
    points = (_point(shape, device, way, prompt, t) for way, t in zip(ways, times, strict=True))
    yield Roofline(trial.conditions(), device, tuple(points))


@in_a_sentence
def kv_recheck(
    model: LoadedModel, *, prompt_tokens: int = 48, new_tokens: int = 16, control: Control | None = None
) -> Iterator[Progressed | KvRecheck]:
    """Old keys and values, kept while the text grew token by token, against the whole text read anew.

    Raises `Stopped`, and `CannotMeasure` for a model that keeps neither keys nor values.
    """
    trial = Trial(model, control, float("inf"))
    new_tokens = min(count("new_tokens", new_tokens), trial.context - 1)
    prompt = max(1, min(count("prompt_tokens", prompt_tokens), trial.context - new_tokens))
    trial.warm_up()
    kept, seconds, _ = trial.prefill(prompt)
    yield Progressed(1, new_tokens + 2, prompt, seconds)
    for step in range(new_tokens):
        yield Progressed(step + 2, new_tokens + 2, prompt + step + 1, trial.step(kept)[0])
    anew, seconds, _ = trial.prefill(prompt + new_tokens)
    yield Progressed(new_tokens + 2, new_tokens + 2, prompt + new_tokens, seconds)
    differences, largest = model.turns.take(lambda: _differences(kept, anew))
    if not differences:
        raise CannotMeasure("This model keeps no keys and values that could be compared.")
    allowed = _ROUNDING.get(model.facts.dtype, _ROUNDING_16_BIT) * largest
    worst = max(differences)
    yield KvRecheck(
        conditions=trial.conditions(),
        positions=prompt + new_tokens,
        layers=len(differences),
        differences=tuple(differences),
        largest_value=largest,
        sentence="recheck_equal"
        if worst == 0
        else "recheck_rounding"
        if worst <= allowed
        else "recheck_other",
    )


def _read(trial: Trial, tokens: int) -> tuple[float, torch.Tensor]:
    _, seconds, logits = trial.prefill(tokens)
    return seconds, logits


def _read_singly(trial: Trial, tokens: int) -> tuple[float, torch.Tensor]:
    cache, seconds, logits = trial.prefill(1)
    for _ in range(tokens - 1):
        took, logits = trial.step(cache)
        seconds += took
    return seconds, logits


@torch.inference_mode()
def _largest(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().masked_fill(one == other, 0).max())


@torch.inference_mode()
def _differences(kept: object, anew: object) -> tuple[list[float], float]:
    """The largest difference of each layer, over keys and values, and the largest value of all."""
    found, largest = [], 0.0
    for old, new in zip(keys_and_values(kept), keys_and_values(anew), strict=True):
        length = min(old[0].shape[-2], new[0].shape[-2])
        pairs = [
            (a[..., -length:, :].float(), b[..., -length:, :].float()) for a, b in zip(old, new, strict=True)
        ]
        found.append(max((_largest(a, b) for a, b in pairs if a.numel()), default=0.0))
        largest = max([largest, *(float(a.abs().max()) for a, _ in pairs if a.numel())])
    return found, largest


_Way = tuple[Literal["prefill", "decode"], int]


def _point(shape: Shape, device: Device, way: _Way, prompt: int, times: list[float]) -> RooflinePoint:
    name, rows = way
    tokens = prompt if name == "prefill" else prompt + 1 + STEPS // 2
    prefill = name == "prefill"
    cost = chunked_cost(shape, chunk_ends(tokens)) if prefill else decode_cost(shape, tokens, rows)
    seconds = Timed(rows, tuple(times)).median_seconds
    return RooflinePoint(
        name=name,
        tokens=tokens,
        seconds=seconds,
        cost=cost,
        flops_per_second=cost.flops / seconds,
        attainable_flops_per_second=attainable_flops_per_second(device, cost.intensity),
        verdict=verdict(cost, seconds, device),
        lanes=rows,
    )


EXPERIMENTS: dict[str, Callable[..., Iterator[Progressed | Experiment]]] = {
    "prefill": prefill_curve, "steps": step_curve, "lanes": lane_curve, "one-by-one": one_by_one,
    "roofline": roofline, "recheck": kv_recheck, "peak": peak_memory,
}  # fmt: skip
"""By the name that a page or a command asks with; each takes a model and `control`."""
