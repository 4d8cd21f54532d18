"""What the cache of a run holds at its last step: measured bytes beside the arithmetic, layer by layer.

Reads a run's record and the model's shape, where it is known. Knows no engine; measures nothing itself.
"""

from dataclasses import dataclass, replace

from playground.core.events import LayerKv
from playground.core.kv import FORMATS, CacheSpec, LayerSpec
from playground.core.report import kv_cache
from playground.core.request import ModelFacts, Reason
from playground.core.run import Lane, Run


@dataclass(frozen=True, slots=True)
class KindOfLayer:
    """Layers that keep alike, `count` of them, of all lanes together.

    Predicted bytes are computed; the others were measured at the end of the run, None where they were not.
    """

    kind: str
    count: int
    window: int | None
    predicted_bytes: int
    predicted_state_bytes: int
    used_bytes: int | None = None
    allocated_bytes: int | None = None
    state_bytes: int | None = None

    @property
    def equal(self) -> bool | None:
        """Whether they hold what was computed; None where they were not measured."""
        if self.used_bytes is None:
            return None
        return (self.used_bytes, self.state_bytes) == (self.predicted_bytes, self.predicted_state_bytes)


@dataclass(frozen=True, slots=True)
class Holding:
    """Of all lanes together: `tokens` are those in the caches, `lanes` of them share `prompt_tokens`.

    `used_bytes`, `allocated_bytes` and `state_bytes` were measured, the predicted ones computed; None is
    unknown. `layers` are one by one in order, `kinds` those that keep alike together; both are empty where
    the layers are not known. `reasons` say why measured and computed differ.
    """

    model: ModelFacts
    lanes: int
    tokens: int
    prompt_tokens: int
    used_bytes: int | None
    allocated_bytes: int | None
    predicted_bytes: int | None
    state_bytes: int | None
    predicted_state_bytes: int | None
    reasons: tuple[Reason, ...]
    kinds: tuple[KindOfLayer, ...]
    layers: tuple[KindOfLayer, ...] = ()

    @property
    def equal(self) -> bool | None:
        """Whether what grows was measured as computed; None where one of them is unknown."""
        if self.used_bytes is None or self.predicted_bytes is None:
            return None
        return self.used_bytes == self.predicted_bytes


def empty(model: ModelFacts, spec: CacheSpec | None) -> Holding:
    """The model before any run: nothing is held, and nothing was measured."""
    spec = spec or plain_spec(model)
    return Holding(model, 0, 0, 0, 0, 0, 0, 0, 0, (), _kinds(spec, _layers(spec, [])))


def holding(run: Run, spec: CacheSpec | None = None) -> Holding | None:
    """The caches of `run` when its latest tokens were chosen; None before its prompt was read."""
    if run.started is None or run.prefilled is None:
        return None
    model = run.started.model
    lanes = [kv_cache(run, lane) for lane in run.lanes]
    differs = any(lane["reasons"] for lane in lanes)
    tokens = [lane["tokens"] for lane in lanes]
    spec = spec or plain_spec(model)
    layers = _layers(spec, [(n, _read(lane, spec)) for n, lane in zip(tokens, run.lanes, strict=True)])
    return Holding(
        model,
        lanes=len(lanes),
        tokens=sum(tokens),
        prompt_tokens=len(run.started.prompt),
        used_bytes=_sum([lane["used_bytes"] for lane in lanes]),
        allocated_bytes=_sum([lane["allocated_bytes"] for lane in lanes]),
        predicted_bytes=_sum([lane["predicted_bytes"] for lane in lanes]),
        state_bytes=_sum([lane["state_bytes"] for lane in lanes]),
        predicted_state_bytes=_sum([lane["predicted_state_bytes"] for lane in lanes]),
        reasons=model.kv_reasons if differs else (),
        kinds=_kinds(spec, layers),
        layers=layers,
    )


def plain_spec(model: ModelFacts) -> CacheSpec | None:
    """The shape from the record alone, where all layers keep everything and alike; else None."""
    if model.kv_formula is None or model.dtype not in FORMATS or model.kv_state_bytes:
        return None
    layers, kv_heads, head_dim, _ = model.kv_formula
    spec = CacheSpec((LayerSpec("full", kv_heads, head_dim),) * layers, model.query_heads, model.dtype)
    grown = None if model.context is None else spec.used_bytes(model.context)
    known = spec.bytes_per_token == model.kv_bytes_per_token and model.kv_context_bytes in (None, grown)
    return spec if known else None


def _read(lane: Lane, spec: CacheSpec | None) -> tuple[LayerKv, ...]:
    """The lane's layers as they were read at its end, one for each of the shape; empty where they are not.

    A cache has no entry for layers at the end that keep nothing.
    """
    read = lane.finished.kv_layers if lane.finished is not None else ()
    if spec is None or not read or any(layer.kind != "none" for layer in spec.layers[len(read) :]):
        return ()
    missing = len(spec.layers) - len(read)
    return read + (LayerKv(0, 0),) * missing if missing >= 0 else ()


def _layers(spec: CacheSpec | None, lanes: list[tuple[int, tuple[LayerKv, ...]]]) -> tuple[KindOfLayer, ...]:
    """Each layer: `lanes` are tokens held and layers read."""
    if spec is None:
        return ()
    tokens, read = [n for n, _ in lanes], [layers for _, layers in lanes]
    known = bool(read) and all(read)
    return tuple(
        _layer(spec, layer, tokens, [of[place] for of in read] if known else None)
        for place, layer in enumerate(spec.layers)
    )


def _layer(spec: CacheSpec, layer: LayerSpec, tokens: list[int], read: list[LayerKv] | None) -> KindOfLayer:
    kept = sum(min(n, layer.window or n) for n in tokens)
    predicted = layer.bytes_per_token(spec.format) * kept
    found = KindOfLayer(layer.kind, 1, layer.window, predicted, spec.layer_state_bytes(layer) * len(tokens))
    if read is None:
        return found
    return replace(
        found,
        used_bytes=sum(one.used_bytes for one in read),
        allocated_bytes=sum(one.allocated_bytes for one in read),
        state_bytes=sum(one.state_bytes for one in read),
    )


def _kinds(spec: CacheSpec | None, layers: tuple[KindOfLayer, ...]) -> tuple[KindOfLayer, ...]:
    """The layers that the shape knows no difference between, together."""
    alike: dict[LayerSpec, list[KindOfLayer]] = {}
    for shape, layer in zip(spec.layers if spec else (), layers, strict=True):
        alike.setdefault(shape, []).append(layer)
    return tuple(map(_together, alike.values()))


def _together(layers: list[KindOfLayer]) -> KindOfLayer:
    return replace(
        layers[0],
        count=len(layers),
        predicted_bytes=sum(layer.predicted_bytes for layer in layers),
        predicted_state_bytes=sum(layer.predicted_state_bytes for layer in layers),
        used_bytes=_sum([layer.used_bytes for layer in layers]),
        allocated_bytes=_sum([layer.allocated_bytes for layer in layers]),
        state_bytes=_sum([layer.state_bytes for layer in layers]),
    )


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
