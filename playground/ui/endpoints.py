"""The named HTTP endpoints: `/generate`, `/compare`, `/kv` and `/tokens`.

They take the arguments of the commands of the same name and answer with the same JSON. Every
refusal is one sentence. Knows no page.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

import gradio as gr

from playground import catalog
from playground.backends.protocol import Backend
from playground.core import report
from playground.core.control import Control
from playground.core.decoding import Decoding, parse_decoding
from playground.core.kv import UnknownShape
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.core.sizing import kv_report
from playground.ui.streaming import REFUSALS, Service

COMPARE_LANES_LIMIT = 4
NEW_TOKENS_LIMIT = 4096
CONFIG_CHARACTERS_LIMIT = 100_000


def register(service: Service) -> None:
    """Add the endpoints to the page that is being built."""

    def generate(
        prompt: str, chat: bool = True, system: str | None = None, strategy: str = "greedy",
        temperature: float = 0.7, top_k: int = 0, top_p: float = 0.9, min_p: float = 0.0,
        typical_p: float = 1.0, repetition_penalty: float = 1.0, seed: int | None = None,
        max_new_tokens: int = 64,
        stop: list[str] | None = None, top_n: int = 20, model: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """One answer with everything known of each step: `first-token generate --json`."""
        values: Any = {
            "strategy": strategy, "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
            "typical_p": typical_p, "repetition_penalty": repetition_penalty, "seed": seed,
            "max_new_tokens": max_new_tokens, "stop": tuple(stop or ()),
        }  # fmt: skip
        request = Request(prompt=prompt, lanes=(Decoding(**values),), chat=chat, system=system, top_n=top_n)
        return report.generation(_run(service, model, request))

    def compare(
        prompt: str, lanes: list[str], chat: bool = True, system: str | None = None,
        max_new_tokens: int = 64, top_n: int = 20, model: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Several settings on one prompt, from one prefill: `first-token compare --json`."""
        if not isinstance(lanes, list) or not 2 <= len(lanes) <= COMPARE_LANES_LIMIT:
            raise ValueError(
                f"lanes must be a list of 2 to {COMPARE_LANES_LIMIT} settings, like “temperature=0.8”."
            )
        decodings = tuple(
            parse_decoding(str(spec), Decoding(max_new_tokens=max_new_tokens)) for spec in lanes
        )
        request = Request(prompt=prompt, lanes=decodings, chat=chat, system=system, top_n=top_n)
        return report.comparison(_run(service, model, request))

    def tokens(
        text: str, chat: bool = False, system: str | None = None, model: str | None = None
    ) -> dict[str, Any]:
        """Ids, pieces, bytes and special flags of a text: `first-token tokens --json`."""
        found, _ = _backend(service, model).tokenize(text, chat=chat, system=system)
        return {"tokens": [asdict(token) for token in found]}

    for endpoint in (generate, compare, kv, tokens):
        gr.events.api(refusing(endpoint), api_name=endpoint.__name__, concurrency_limit=4)


def kv(config: str, tokens: int = 4096, sequences: int = 1, dtype: str = "auto") -> dict[str, Any]:
    """Bytes of a KV cache: `first-token kv --json`; `config` is a catalog name or the JSON itself."""
    found = _config(config)
    return kv_report(found, tokens, sequences, None if dtype == "auto" else dtype)


def refusing(endpoint: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """`endpoint` with every refusal as the one sentence that reaches the caller."""

    @wraps(endpoint)
    def answer(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return endpoint(*args, **kwargs)
        except (*REFUSALS, UnknownShape, catalog.UnknownConfig, ValueError) as error:
            raise gr.Error(str(error), print_exception=False) from None

    return answer


def _config(text: object) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > CONFIG_CHARACTERS_LIMIT:
        raise ValueError(f"config must be text of at most {CONFIG_CHARACTERS_LIMIT:,} characters.")
    if not text.lstrip().startswith("{"):
        return _named(text.strip().lower())
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(
            "config begins like JSON and is not; send a config.json's text or a catalog name."
        ) from None
    return dict(found)


def _named(name: str) -> dict[str, Any]:
    """A config of the catalog; unlike the command, nothing here opens a file or asks the Hub."""
    known = {name: config for config in catalog.configs() for name in (config.name, config.hub.lower())}
    if name not in known:
        names = ", ".join(config.name for config in catalog.configs())
        raise ValueError(f"config must be the text of a config.json, or one of {names}.")
    return dict(known[name].shape)


def _backend(service: Service, model: str | None) -> Backend:
    waiting = service.models.ready(model)
    while True:
        try:
            next(waiting)
        except StopIteration as ready:
            backend: Backend = ready.value
            return backend


def _run(service: Service, model: str | None, request: Request) -> Run:
    if any(
        not isinstance(lane.max_new_tokens, int) or lane.max_new_tokens > NEW_TOKENS_LIMIT
        for lane in request.lanes
    ):
        raise ValueError(f"max_new_tokens must be a whole number of at most {NEW_TOKENS_LIMIT:,} over HTTP.")
    run = fold(_backend(service, model).stream(request, Control()))
    if run.failed is not None:
        raise ValueError(run.failed.message)
    return run
