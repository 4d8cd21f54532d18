"""The same model with another kind of attention: what its cache would take then.

Everything but what each layer keeps stays as it is, layers, dtype and widths of a head. These are sizes
alone: a model is trained with its kind of attention, and what another would cost in quality is not known here.
"""

from dataclasses import dataclass, replace
from typing import Literal

from playground.core.kv import CacheSpec, LayerSpec, UnknownShape

GhostName = Literal["mha", "gqa", "mqa", "mla", "windowed", "full"]

GROUPED_HEADS = 8
"""KV heads of the grouped ghost: those of Llama 3, Mistral and Qwen3, at any number of query heads."""

LATENT_HEADS = 4.5
"""Numbers of a latent in widths of a head: 4 and a rotated key of a half, as DeepSeek-V2 chose them
(arXiv:2405.04434, section 2.1.4: a cache as of 2.25 groups)."""

LOCAL_WINDOW_TOKENS = 1024
LOCAL_OF = 6
"""The windowed ghost is Gemma 3's (arXiv:2503.19786): five layers that keep the last 1,024 to one that keeps all."""


@dataclass(frozen=True, slots=True)
class Ghost:
    """One kind of attention, and the bytes used then; `real` is what the config says.

    `kv_heads` is None where layers differ or keep something else than heads.
    """

    name: GhostName
    used_bytes: int
    real: bool
    kv_heads: int | None = None


def ghosts(spec: CacheSpec, tokens: int, sequences: int = 1) -> tuple[Ghost, ...]:
    """The kinds beside the real one, from many heads to few; empty where no layer attends."""
    heads = spec.query_heads
    if heads is None:
        return ()
    real = Ghost(_kind(spec), spec.used_bytes(tokens, sequences), True, _kv_heads(spec))
    found = [real]
    wanted: dict[GhostName, int] = {"mha": heads, "gqa": GROUPED_HEADS, "mqa": 1}
    for name, kv_heads in wanted.items():
        if kv_heads != real.kv_heads and (name != "gqa" or _groups(heads)):
            found += _with_heads(spec, name, kv_heads, tokens, sequences)
    if real.name == "windowed":
        found.append(Ghost("full", spec.allocated_bytes(tokens, sequences), False, real.kv_heads))
    elif real.name != "mla":
        found += [
            Ghost("mla", _latent(spec).used_bytes(tokens, sequences), False),
            Ghost("windowed", _windowed(spec).used_bytes(tokens, sequences), False, real.kv_heads),
        ]
    order = ("full", "mha", "gqa", "mqa", "mla", "windowed")
    return tuple(sorted(found, key=lambda ghost: order.index(ghost.name)))


def _groups(heads: int) -> bool:
    return heads > GROUPED_HEADS and heads % GROUPED_HEADS == 0


def _with_heads(spec: CacheSpec, name: GhostName, kv_heads: int, tokens: int, sequences: int) -> list[Ghost]:
    try:
        return [Ghost(name, spec.with_kv_heads(kv_heads).used_bytes(tokens, sequences), False, kv_heads)]
    except UnknownShape:
        return []


def _kind(spec: CacheSpec) -> GhostName:
    attending = [layer for layer in spec.layers if layer.kv_heads]
    if any(layer.kind.startswith("latent") for layer in attending):
        return "mla"
    if any(layer.window for layer in attending):
        return "windowed"
    kv_heads = _kv_heads(spec)
    return "mha" if kv_heads == spec.query_heads else "mqa" if kv_heads == 1 else "gqa"


def _kv_heads(spec: CacheSpec) -> int | None:
    """How many heads keep keys and values, where all attending layers have as many."""
    attending = [layer for layer in spec.layers if layer.kv_heads]
    found = {layer.kv_heads for layer in attending}
    latent = any(layer.kind.startswith("latent") for layer in attending)
    return found.pop() if len(found) == 1 and not latent else None


def _latent(spec: CacheSpec) -> CacheSpec:
    """The attending layers of `spec` with one latent each."""
    return replace(spec, layers=tuple(_with_latent(layer) for layer in spec.layers))


def _with_latent(layer: LayerSpec) -> LayerSpec:
    if not layer.kv_heads:
        return layer
    width = int(LATENT_HEADS * layer.head_dim)
    return replace(layer, kind="latent", kv_heads=1, head_dim=width, value_dim=0)


def _windowed(spec: CacheSpec) -> CacheSpec:
    """The attending layers of `spec`, five of six with a window."""
    layers = list(spec.layers)
    attending = [i for i, layer in enumerate(layers) if layer.kv_heads]
    for place, i in enumerate(attending, 1):
        if place % LOCAL_OF:
            layers[i] = replace(layers[i], kind="sliding", window=LOCAL_WINDOW_TOKENS)
    return replace(spec, layers=tuple(layers))
