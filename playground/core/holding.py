"""What the cache of a run holds at its last step: measured bytes beside the arithmetic, layer by layer.

Reads a run's record and the model's shape, where it is known. Knows no engine; measures nothing itself.
"""

from collections import Counter
from dataclasses import dataclass

from playground.core.kv import FORMATS, CacheSpec, LayerSpec
from playground.core.report import kv_cache
from playground.core.request import ModelFacts, Reason
from playground.core.run import Run


@dataclass(frozen=True, slots=True)
class KindOfLayer:
    """Layers that keep alike, `count` of them; bytes are computed, of all of them and all lanes."""

    kind: str
    count: int
    window: int | None
    bytes_per_token: int
    used_bytes: int
    state_bytes: int


@dataclass(frozen=True, slots=True)
class Holding:
    """Of all lanes together: `tokens` are those in the caches, `lanes` of them share `prompt_tokens`.

    `used_bytes`, `allocated_bytes` and `state_bytes` were measured, the predicted ones computed; None is
    unknown. `kinds` is empty where the layers are not known. `reasons` say why measured and computed differ.
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

    @property
    def equal(self) -> bool | None:
        """Whether what grows was measured as computed; None where one of them is unknown."""
        if self.used_bytes is None or self.predicted_bytes is None:
            return None
        return self.used_bytes == self.predicted_bytes


def empty(model: ModelFacts, spec: CacheSpec | None) -> Holding:
    """The model before any run: nothing is held, and nothing was measured."""
    return Holding(model, 0, 0, 0, 0, 0, 0, 0, 0, (), _kinds(spec or plain_spec(model), []))


def holding(run: Run, spec: CacheSpec | None = None) -> Holding | None:
    """The caches of `run` when its latest tokens were chosen; None before its prompt was read."""
    if run.started is None or run.prefilled is None:
        return None
    model = run.started.model
    lanes = [kv_cache(run, lane) for lane in run.lanes]
    differs = any(lane["reasons"] for lane in lanes)
    tokens = [lane["tokens"] for lane in lanes]
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
        kinds=_kinds(spec or plain_spec(model), tokens),
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


def _kinds(spec: CacheSpec | None, tokens: list[int]) -> tuple[KindOfLayer, ...]:
    if spec is None:
        return ()
    alike = Counter(spec.layers)
    return tuple(_kind(spec, layer, count, tokens) for layer, count in alike.items())


def _kind(spec: CacheSpec, layer: LayerSpec, count: int, tokens: list[int]) -> KindOfLayer:
    each = layer.bytes_per_token(spec.format)
    kept = sum(min(n, layer.window or n) for n in tokens)
    state = spec.layer_state_bytes(layer) * count * len(tokens)
    return KindOfLayer(layer.kind, count, layer.window, each * count, each * count * kept, state)


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
