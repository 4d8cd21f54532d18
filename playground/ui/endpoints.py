"""The named HTTP endpoints: `/generate`, `/compare`, `/race`, `/score`, `/kv` and `/tokens`.

They take the arguments of the commands of the same name and answer with the same JSON. Every
refusal is one sentence. Knows no page.
"""

import logging
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import wraps
from typing import Any

import gradio as gr

from playground import catalog
from playground.backends.protocol import Racer, Scorer
from playground.core import report
from playground.core.decoding import (
    GREEDY,
    Decoding,
    InvalidSetting,
    chosen_decoding,
    parse_decoding,
    validated,
)
from playground.core.race import Race, follow, race_report
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.scoring import scoring_report
from playground.core.sizing import kv_report
from playground.core.stages import STAGE_ORDER, read_order
from playground.ui.calls import Calls
from playground.ui.config_text import BYTE_ORDER_MARK, named_config, read_config
from playground.ui.streaming import Service

COMPARE_LANES_LIMIT = 4
NEW_TOKENS_LIMIT, RACE_TOKENS_LIMIT = 4096, 512
TOP_N_LIMIT = 100

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
        order: str | None = None, penalty_scope: str = "all",
    ) -> dict[str, Any]:  # fmt: skip
        """One answer with everything known of each step: `first-token generate --json`."""
        sampling = {
            "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "typical_p": typical_p,
        }  # fmt: skip
        decoding = chosen_decoding(
            strategy, sampling, repetition_penalty=repetition_penalty, seed=seed,
            max_new_tokens=max_new_tokens, stop=_stops(stop),
            order=STAGE_ORDER if order is None else read_order(_text("order", order)),
            penalty_scope=penalty_scope,
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

    def race(
        caller: gr.Request,
        prompt: str, chat: bool = True, system: str | None = None, max_new_tokens: int = 64,
        model: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """One greedy run with the KV cache and without: `first-token race --json`."""
        request = _request(prompt, (replace(GREEDY, max_new_tokens=max_new_tokens),), chat, system, 1)
        if max_new_tokens > RACE_TOKENS_LIMIT:
            raise InvalidSetting(f"max_new_tokens must be at most {RACE_TOKENS_LIMIT:,} in a race over HTTP.")
        backend, found = calls.backend(_name(model)), Race()
        if not isinstance(backend, Racer):
            raise InvalidSetting("What answers here has no model that could race; load one and try again.")
        with calls.asking(caller.session_hash) as control:
            for item in backend.race(request, control):
                follow(found, item)
        return race_report(found)

    def score(
        caller: gr.Request,
        prompt: str, text: str | None = None, chat: bool = True, system: str | None = None, top: int = 5,
        prompt_ids: list[int] | None = None, model: str | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Probability and rank of a given text: `first-token score --json`.

        `prompt_ids` take the prompt's place, for the question at a step of a run.
        """
        _require_prompt(prompt, chat, system)
        request = Request(prompt, chat=chat, system=system, prompt_ids=_ids(prompt_ids))
        wanted = None if text is None else _text("text", text)
        backend = calls.backend(_name(model))
        if not isinstance(backend, Scorer):
            raise InvalidSetting("What answers here has no model to ask; load one and try again.")
        with calls.asking(caller.session_hash) as control:
            return scoring_report(backend.score(request, wanted, top=top, control=control))

    def tokens(
        text: str, chat: bool = False, system: str | None = None, model: str | None = None
    ) -> dict[str, Any]:
        """Ids, pieces, bytes and special flags of a text: `first-token tokens --json`."""
        _require_prompt(text, chat, system)
        found, _ = calls.backend(_name(model)).tokenize(text, chat=chat, system=system)
        return {"tokens": [asdict(token) for token in found]}

    def gone(caller: gr.Request) -> None:
        calls.stop(caller.session_hash)

    for endpoint in (generate, compare, race, score, kv, tokens):
        gr.events.api(refusing(endpoint), api_name=endpoint.__name__, concurrency_limit=4)
    demo.unload(gone)


def kv(
    config: str, tokens: int = 4096, sequences: int = 1, dtype: str = "auto", weights_dtype: str = "auto",
    accelerator: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Bytes of a KV cache: `first-token kv --json`; `config` is a catalog name or the JSON itself."""
    given = _text("config", config).removeprefix(BYTE_ORDER_MARK)
    known = None if given.lstrip().startswith("{") else named_config(given)
    memory = None if accelerator is None else catalog.accelerator(_text("accelerator", accelerator))
    return kv_report(
        read_config(given) if known is None else known.shape, tokens, sequences,
        dtype=_unless_auto("dtype", dtype), weights_dtype=_unless_auto("weights_dtype", weights_dtype),
        parameters=known.parameters if known else None,
        memory_bytes=memory.memory_bytes if memory else None,
    )  # fmt: skip


def _unless_auto(name: str, value: object) -> str | None:
    return None if value == "auto" else _text(name, value)


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


def _stops(given: object) -> Any:
    """The stop strings; what is no list is left for `validated` to refuse."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, list) else given


def _ids(given: object) -> tuple[int, ...] | None:
    if given is None:
        return None
    if not isinstance(given, list) or any(type(id) is not int for id in given):
        raise InvalidSetting("prompt_ids must be a list of token ids.")
    return tuple(given)


def _name(model: object) -> str | None:
    return None if model is None else _text("model", model).strip() or None
