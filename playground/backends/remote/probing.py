"""Finding out what speaks at an address: llama.cpp by its `/props`, OpenAI's API by its list of models.

Knows no run.
"""

from typing import Any

from playground.backends.remote.chat import Chat
from playground.backends.remote.completions import Completions, read_choice
from playground.backends.remote.connection import Connection
from playground.backends.remote.dialect import Dialect
from playground.backends.remote.faults import ServerFault
from playground.backends.remote.llamacpp import LlamaCpp
from playground.backends.remote.openai_server import ABSENT, Pieces, Served, kv_share, served_model


def probed(connection: Connection, model: str | None) -> Dialect:
    """The dialect of the server; raises `ServerFault`."""
    props = _props(connection)
    if props is not None:
        return LlamaCpp(connection, props)
    served = served_model(connection, model)
    if Pieces(connection, served.id).there() and _takes_ids(connection, served):
        return Completions(connection, served, _has_metrics(connection), _reads_prompts(connection, served))
    return Chat(connection, served)


def _takes_ids(connection: Connection, served: Served) -> bool:
    """Whether a prompt of ids is answered with ids."""
    body = {
        "model": served.id,
        "prompt": [1, 1],
        "max_tokens": 1,
        "logprobs": 1,
        "return_tokens_as_token_ids": True,
    }
    choice = _tried(connection, body)
    logprobs = choice.get("logprobs")
    names = logprobs.get("tokens") if isinstance(logprobs, dict) else None
    return isinstance(names, list) and all(str(name).startswith("token_id:") for name in names)


def _reads_prompts(connection: Connection, served: Served) -> bool:
    body = {"model": served.id, "prompt": [1, 1], "max_tokens": 1, "prompt_logprobs": 1}
    return isinstance(_tried(connection, body).get("prompt_logprobs"), list)


def _has_metrics(connection: Connection) -> bool:
    try:
        return kv_share(connection) is not None
    except ServerFault:
        return False


def _tried(connection: Connection, body: dict[str, Any]) -> dict[str, Any]:
    """What the server answers to a completion of one token; empty where it refuses it."""
    try:
        return read_choice(connection.ask("/v1/completions", body)) or {}
    except ServerFault as fault:
        if fault.status not in ABSENT:
            raise
        return {}


def _props(connection: Connection) -> dict[str, Any] | None:
    """What a llama.cpp server says of itself; None where it is another one."""
    try:
        found = connection.ask("/props")
    except ServerFault as fault:
        if fault.status not in ABSENT:
            raise
        return None
    known = isinstance(found, dict) and "default_generation_settings" in found
    return found if known else None
