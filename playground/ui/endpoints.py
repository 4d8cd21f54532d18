"""The named HTTP endpoints: `/generate`, `/compare`, `/kv` and `/tokens`.

They take the arguments of the commands of the same name and answer with the same JSON. Every
refusal is one sentence. Knows no page.
"""

import json
import logging
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

import gradio as gr

from playground import catalog
from playground.core import report
from playground.core.decoding import Decoding, InvalidSetting, chosen_decoding, parse_decoding, validated
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.sizing import kv_report
from playground.ui.calls import Calls
from playground.ui.streaming import Service

COMPARE_LANES_LIMIT = 4
NEW_TOKENS_LIMIT = 4096
TOP_N_LIMIT = 100
CONFIG_CHARACTERS_LIMIT = 100_000

_UNEXPECTED = "The request met an unexpected error, so nothing was answered; the log has the details."

_log = logging.getLogger(__name__)


def register(demo: gr.Blocks, service: Service) -> None:
    """Add the endpoints to `demo`, the page that is being built."""
    calls = Calls(service.models, service.runs)

    def generate(
        caller: gr.Request,
        prompt: str, chat: bool = True, system: str | None = None, strategy: str | None = None,
        temperature: float | None = None, top_k: int | None = None, top_p: float | None = None,
        min_p: float | None = None, typical_p: float | None = None, repetition_penalty: float = 1.0,
        seed: int | None = None,
        max_new_tokens: int = 64,
        stop: list[str] | None = None, top_n: int = 20, model: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """One answer with everything known of each step: `first-token generate --json`."""
        sampling = {
            "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "typical_p": typical_p,
        }  # fmt: skip
        decoding = chosen_decoding(
            strategy, sampling, repetition_penalty=repetition_penalty, seed=seed,
            max_new_tokens=max_new_tokens, stop=tuple(stop) if isinstance(stop, list) else stop or (),
        )  # fmt: skip
        request = _request(prompt, (decoding,), chat, system, top_n)
        return report.generation(calls.run(caller.session_hash, _name(model), request))

    def compare(
        caller: gr.Request,
        prompt: str, lanes: list[str], chat: bool = True, system: str | None = None,
        max_new_tokens: int = 64, top_n: int = 20, model: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Several settings on one prompt, from one prefill: `first-token compare --json`."""
        if not isinstance(lanes, list) or not 2 <= len(lanes) <= COMPARE_LANES_LIMIT:
            raise InvalidSetting(
                f"lanes must be a list of 2 to {COMPARE_LANES_LIMIT} settings, like “temperature=0.8”."
            )
        base = Decoding(max_new_tokens=max_new_tokens)
        decodings = tuple(parse_decoding(_text("a lane", spec), base) for spec in lanes)
        request = _request(prompt, decodings, chat, system, top_n)
        return report.comparison(calls.run(caller.session_hash, _name(model), request))

    def tokens(
        text: str, chat: bool = False, system: str | None = None, model: str | None = None
    ) -> dict[str, Any]:
        """Ids, pieces, bytes and special flags of a text: `first-token tokens --json`."""
        _require_prompt(text, chat, system)
        found, _ = calls.backend(_name(model)).tokenize(text, chat=chat, system=system)
        return {"tokens": [asdict(token) for token in found]}

    def gone(caller: gr.Request) -> None:
        calls.stop(caller.session_hash)

    for endpoint in (generate, compare, kv, tokens):
        gr.events.api(refusing(endpoint), api_name=endpoint.__name__, concurrency_limit=4)
    demo.unload(gone)


def kv(config: str, tokens: int = 4096, sequences: int = 1, dtype: str = "auto") -> dict[str, Any]:
    """Bytes of a KV cache: `first-token kv --json`; `config` is a catalog name or the JSON itself."""
    found = _config(config)
    return kv_report(found, tokens, sequences, None if dtype == "auto" else _text("dtype", dtype))


def refusing(endpoint: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """`endpoint` with whatever goes wrong as the one sentence that reaches the caller."""

    @wraps(endpoint)
    def answer(*args: Any, **kwargs: Any) -> dict[str, Any]:
        try:
            return endpoint(*args, **kwargs)
        except Refused as error:
            raise gr.Error(str(error), print_exception=False) from None
        except Exception:
            _log.exception("An endpoint failed.")
            raise gr.Error(_UNEXPECTED, print_exception=False) from None

    return answer


def _request(prompt: str, lanes: tuple[Decoding, ...], chat: bool, system: str | None, top_n: int) -> Request:
    """The request of a program, within what one call may cost."""
    _require_prompt(prompt, chat, system)
    for lane in lanes:
        if isinstance(lane.max_new_tokens, int) and lane.max_new_tokens > NEW_TOKENS_LIMIT:
            raise InvalidSetting(f"max_new_tokens must be at most {NEW_TOKENS_LIMIT:,} over HTTP.")
        validated(lane)
    if not isinstance(top_n, int) or isinstance(top_n, bool) or not 0 <= top_n <= TOP_N_LIMIT:
        raise InvalidSetting(f"top_n must be a whole number from 0 to {TOP_N_LIMIT} over HTTP.")
    return Request(prompt=prompt, lanes=lanes, chat=chat, system=system, top_n=top_n)


def _require_prompt(prompt: object, chat: object, system: object) -> None:
    _text("the prompt", prompt)
    if system is not None:
        _text("system", system)
    if not isinstance(chat, bool):
        raise InvalidSetting("chat must be true or false.")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidSetting(f"{name} must be text, not {repr(value)[:60]}.")
    return value


def _name(model: object) -> str | None:
    return None if model is None else _text("model", model).strip() or None


def _config(text: object) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > CONFIG_CHARACTERS_LIMIT:
        raise InvalidSetting(f"config must be text of at most {CONFIG_CHARACTERS_LIMIT:,} characters.")
    if not text.lstrip().startswith("{"):
        return _named(text.strip().lower())
    try:
        return dict(json.loads(text))
    except (ValueError, RecursionError):
        raise InvalidSetting(
            "config begins like JSON and is not; send a config.json's text or a catalog name."
        ) from None


def _named(name: str) -> dict[str, Any]:
    """A config of the catalog; unlike the command, nothing here opens a file or asks the Hub."""
    known = {name: config for config in catalog.configs() for name in (config.name, config.hub.lower())}
    if name not in known:
        names = ", ".join(config.name for config in catalog.configs())
        raise InvalidSetting(f"config must be the text of a config.json, or one of {names}.")
    return dict(known[name].shape)
