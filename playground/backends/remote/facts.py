"""The model behind a server, as a record of a run names it; the cache's arithmetic where its config is known.

Knows no connection.
"""

import re

from playground import catalog
from playground.backends.remote.address import Address
from playground.core.kv import CacheSpec, UnknownShape, cache_spec
from playground.core.request import ModelFacts

_QUANTISED = re.compile(r"[.-](?:I?Q\d\w*|F16|BF16|F32|FP16|GGUF)$", re.IGNORECASE)
_BYTES_LIMIT = 2**62


def short_name(model: str) -> str:
    """What a person calls it: a server may name a model by a path of its own, which is nobody's business."""
    name = model.replace("\\", "/").rstrip("/").rpartition("/")[2][:120]
    return name.removesuffix(".gguf") or "model"


def known_spec(model: str) -> CacheSpec | None:
    """The cache of a model whose config is in the catalog, with keys and values in 16 bits."""
    title = _QUANTISED.sub("", short_name(model)).lower()
    for entry in catalog.configs():
        if entry.hub.rpartition("/")[2].lower() == title or entry.name == title:
            try:
                return cache_spec(entry.shape, "float16")
            except UnknownShape:
                return None
    return None


def remote_facts(
    model: str, server: str, address: Address, *, vocabulary: int = 0, context: int | None = None,
    dtype: str = "unknown", weights_bytes: int | None = None, chat_template: bool = True,
) -> ModelFacts:  # fmt: skip
    """The facts of one model; `vocabulary` is 0 where the server does not tell."""
    spec = known_spec(model)
    return ModelFacts(
        short_name(model), None, server, dtype[:40], vocabulary, context,
        kv_bytes_per_token=spec.bytes_per_token if spec else None,
        query_heads=spec.query_heads if spec else None,
        weights_bytes=weights_bytes, device_name=f"{server} · {address.shown}", chat_template=chat_template,
    )  # fmt: skip
