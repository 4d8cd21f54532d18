"""What can be told of the memory of a run, or of a loaded model before any: measured and computed, as values.

Knows the shared service and no component.
"""

from dataclasses import dataclass
from typing import Any

from playground.backends.protocol import Backend
from playground.core.experiment import Conditions, Forecast, PeakMemory
from playground.core.fits import widths
from playground.core.forecast import forecast
from playground.core.formats import FORMATS
from playground.core.holding import Holding, empty, holding, plain_spec
from playground.core.kv import CacheSpec
from playground.core.peak import activation_bytes, peak_memory
from playground.core.request import ModelFacts
from playground.core.run import Run
from playground.ui.streaming import Service

CHUNK_TOKENS = 256
"""Tokens in one forward of a prefill."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The caches of a run; `forecast` and `peak` are None before any, `spec` where the shape is not known."""

    holding: Holding
    spec: CacheSpec | None
    forecast: Forecast | None = None
    peak: PeakMemory | None = None


def look_at(service: Service, run: Run | None, model: str | None) -> Seen | None:
    """The run if it has read its prompt, else the model with no token; None where neither is there."""
    if run is not None and run.started is not None:
        facts = run.started.model
        backend = service.models.maker_of(facts)
        spec = _spec(backend, facts)
        held = holding(run, spec)
        if held is not None:
            return Seen(
                held, spec, forecast(run, spec, _free_bytes(backend)), _peak(run, facts, spec, backend)
            )
    backend = service.models.loaded(model)
    if backend is None:
        return None
    facts = backend.facts()
    spec = _spec(backend, facts)
    return Seen(empty(facts, spec), spec)


def _spec(backend: Backend | None, facts: ModelFacts) -> CacheSpec | None:
    """The shape of the cache of that model: the loaded one's, else what the record alone tells."""
    spec = getattr(_model(backend), "spec", None)
    return spec if isinstance(spec, CacheSpec) and spec.dtype == facts.dtype else plain_spec(facts)


def _peak(run: Run, facts: ModelFacts, spec: CacheSpec | None, backend: Backend | None) -> PeakMemory | None:
    """The memory of the run's prefill, told apart; what a layer holds at its busiest is an estimate."""
    read = run.prefilled
    if read is None or not read.tokens_computed:
        return None
    return peak_memory(
        Conditions(facts.name, facts.device_name or facts.device, facts.dtype, None, None),
        read.kv_tokens, weights_bytes=facts.weights_bytes, vocabulary=facts.vocabulary, spec=spec,
        kv_bytes=read.kv_used_bytes, state_bytes=read.kv_state_bytes,
        rest_bytes=_rest_bytes(read.tokens_computed, facts, backend),
    )  # fmt: skip


def _rest_bytes(tokens: int, facts: ModelFacts, backend: Backend | None) -> int | None:
    config = getattr(getattr(_model(backend), "module", None), "config", None)
    found = widths(config.to_dict()) if config is not None else None
    if found is None or facts.dtype not in FORMATS:
        return None
    width = FORMATS[facts.dtype].vector_bytes(1)
    return activation_bytes(min(tokens, CHUNK_TOKENS), found.hidden, found.inner, width)


def _free_bytes(backend: Backend | None) -> int | None:
    """What the device of the loaded model has free now; None where nothing is loaded here."""
    device = getattr(_model(backend), "device", None)
    if device is None:
        return None
    from playground.engine.devices import memory  # only where torch is there already, for a loaded model

    return memory(device).free_bytes


def _model(backend: Backend | None) -> Any:
    return getattr(backend, "model", None)
