"""llama.cpp's server through its own API: `/completion` with `n_probs`, `/tokenize`, `/props`, `/slots`.

Its logprobs are of the model itself, over the whole vocabulary, before any sampler. Knows no run.
"""

import re
from collections.abc import Iterator
from typing import Any

from playground.backends.protocol import BackendError
from playground.backends.remote.answers import (
    Answer,
    Ended,
    Timed,
    answer,
    logprob,
    make_token,
    token_bytes,
    whole,
)
from playground.backends.remote.capabilities import YES, Capabilities, Capability
from playground.backends.remote.connection import Connection
from playground.backends.remote.dialect import DRAWS, Asked, Opened, own_words
from playground.backends.remote.facts import remote_facts
from playground.backends.remote.faults import NO_LOGPROBS_SENT, NOT_JSON, ServerFault
from playground.core.decoding import Decoding
from playground.core.events import Distribution, Note
from playground.core.request import Request
from playground.core.scoring import Scoring
from playground.core.tokens import Token

SAMPLERS = {
    "repetition_penalty": "penalties", "top_k": "top_k", "typical_p": "typ_p", "top_p": "top_p",
    "min_p": "min_p", "temperature": "temperature",
}  # fmt: skip
WINDOW_TOKENS = 2**17
"""What a penalty looks back at where the context is not known."""
_STAND_IN = "the-words-of-the-user"
_SPECIAL = re.compile(r"<\|[^|]*\|>|</?s>|<(?:bos|eos|pad|unk|start_of_turn|end_of_turn)>")


class LlamaCpp:
    """One llama.cpp server, probed; raises `ServerFault` where it does not answer as one."""

    distribution: Distribution = "raw"
    notes: tuple[Note, ...] = (DRAWS,)

    def __init__(self, connection: Connection, props: dict[str, Any]) -> None:
        self._connection = connection
        models = connection.ask("/v1/models")
        found = models.get("data") if isinstance(models, dict) else None
        if not isinstance(found, list) or not found or not isinstance(found[0], dict):
            raise ServerFault("The server has no model loaded; start it with one and connect again.")
        told = found[0].get("meta")
        meta: dict[str, Any] = told if isinstance(told, dict) else {}
        defaults = props.get("default_generation_settings")
        context = defaults.get("n_ctx") if isinstance(defaults, dict) else None
        self._template = bool(props.get("chat_template"))
        self._slots = props.get("endpoint_slots") is True
        self._names: dict[int, Token] = {}
        self.facts = remote_facts(
            str(found[0].get("id", "")), "llama.cpp", connection.address,
            vocabulary=whole(meta.get("n_vocab")) or 0, context=whole(context) or None,
            dtype=str(meta.get("ftype") or "unknown"), weights_bytes=whole(meta.get("size")),
            chat_template=self._template,
        )  # fmt: skip
        self.capabilities = Capabilities(
            prompt_ids=YES, tokenizer=YES, candidate_ids=YES, raw=YES, stages=YES,
            prompt_logprobs=Capability(False, "no_prompt_logprobs"),
            usage=YES if self._slots else Capability(False, "no_slots"), reuse=YES,
        )  # fmt: skip

    def settled(self, decoding: Decoding) -> Decoding:
        """The lane as it is; raises `BackendError` for what the server cannot do."""
        sampling(decoding)
        return decoding

    def tokens(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt through the server's own template and tokenizer."""
        if not prompt:
            raise BackendError("The prompt is empty; type something for the model to continue.")
        in_chat = chat and self._template
        rendered = self._rendered(prompt, system) if in_chat else prompt
        found = self._cut(rendered, raw=not in_chat)
        before, _, after = (
            self._rendered(_STAND_IN, system).rpartition(_STAND_IN) if in_chat else ("", "", "")
        )
        owns = own_words([t.bytes for t in found], prompt, (before, after))
        if not in_chat:
            owns = [not token.special for token in found]
        return found, owns

    def named(self, ids: tuple[int, ...]) -> list[Token]:
        """Each id's own piece, asked for once."""
        return [self._named(id) for id in ids]

    def cut(self, text: str) -> list[Token]:
        """A text by itself, no beginning of one."""
        return self._cut(text, raw=False)

    def answers(self, asked: Asked, opened: Opened) -> Iterator[Answer | Ended]:
        """One stream of `/completion`."""
        assert asked.ids is not None
        body = self._body(asked)
        with self._connection.stream("/completion", body) as (objects, close):
            opened(close)
            for data in objects:
                if not isinstance(data, dict):
                    raise ServerFault(NOT_JSON)
                yield from self._read(data)
                if data.get("stop") is True:
                    yield Ended("length" if data.get("stop_type") == "limit" else "stop")
                    return

    def score(self, request: Request, text: str | None, top: int) -> Scoring:
        """Never there: llama.cpp's server reads no probabilities of a prompt."""
        raise NotImplementedError

    def kv_share(self) -> float | None:
        """Tokens in the slots at work, over all that the slots have room for."""
        if not self._slots:
            return None
        slots = self._connection.ask("/slots")
        slots = [slot for slot in slots if isinstance(slot, dict)] if isinstance(slots, list) else []
        room = sum(whole(slot.get("n_ctx")) or 0 for slot in slots)
        held = sum(
            whole(slot.get("n_prompt_tokens")) or 0 for slot in slots if slot.get("is_processing") is True
        )
        return min(1.0, held / room) if room else None

    def _rendered(self, prompt: str, system: str | None) -> str:
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": prompt})
        found = self._connection.ask("/apply-template", {"messages": messages})
        text = found.get("prompt") if isinstance(found, dict) else None
        if not isinstance(text, str):
            raise ServerFault(NOT_JSON)
        return text

    def _cut(self, text: str, raw: bool) -> list[Token]:
        data = {"content": text, "add_special": raw, "parse_special": not raw, "with_pieces": True}
        found = self._connection.ask("/tokenize", data)
        pieces = found.get("tokens") if isinstance(found, dict) else None
        if not isinstance(pieces, list) or not pieces:
            raise ServerFault("The server's tokenizer makes no token of this prompt; type something else.")
        return [self._piece(one) for one in pieces]

    def _piece(self, one: Any) -> Token:
        id, piece = (one.get("id"), one.get("piece")) if isinstance(one, dict) else (None, None)
        raw = token_bytes(piece) if isinstance(piece, list) else None
        if (
            type(id) is not int
            or id < 0
            or not isinstance(piece, str | list)
            or (raw is None and not isinstance(piece, str))
        ):
            raise ServerFault(NOT_JSON)
        text = piece if isinstance(piece, str) else ""
        special = _SPECIAL.fullmatch(text) is not None
        token = make_token(id, text, raw, special)
        self._names[id] = token
        return token

    def _named(self, id: int) -> Token:
        if id not in self._names:
            found = self._connection.ask("/detokenize", {"tokens": [id]})
            text = found.get("content", "") if isinstance(found, dict) else ""
            text = text if isinstance(text, str) else ""
            self._names[id] = make_token(id, text, None, _SPECIAL.fullmatch(text) is not None)
        return self._names[id]

    def _body(self, asked: Asked) -> dict[str, Any]:
        """Every field explicitly: defaults differ from server to server and from year to year."""
        decoding = asked.decoding
        return {
            "prompt": list(asked.ids or ()), "stream": True, "n_predict": decoding.max_new_tokens,
            "n_probs": max(1, asked.top_n), "post_sampling_probs": False, "return_tokens": True,
            "timings_per_token": True, "cache_prompt": True, "stop": [],
            **sampling(decoding, self.facts.context or WINDOW_TOKENS),
        }  # fmt: skip

    def _read(self, data: dict[str, Any]) -> Iterator[Answer]:
        found = data.get("completion_probabilities")
        if found is None and data.get("tokens"):
            raise ServerFault(NO_LOGPROBS_SENT)
        timings = data.get("timings")
        timings = timings if isinstance(timings, dict) else {}
        timed = Timed(whole(timings.get("prompt_n")), whole(timings.get("cache_n")))
        for one in found if isinstance(found, list) and data.get("stop") is not True else []:
            token, own = self._candidate(one)
            top = one.get("top_logprobs")
            if not isinstance(top, list):
                raise ServerFault(NO_LOGPROBS_SENT)
            yield answer(token, own, [self._candidate(c) for c in top], timed)

    def _candidate(self, one: Any) -> tuple[Token, float]:
        if not isinstance(one, dict) or whole(one.get("id")) is None:
            raise ServerFault(NO_LOGPROBS_SENT)
        id, raw, text = one["id"], token_bytes(one.get("bytes")), one.get("token")
        if id not in self._names and raw == "":  # what marks a turn has no text of its own
            named = self._named(id)
            self._names[id] = make_token(id, named.text or f"<{id}>", "", special=True)
        elif id not in self._names:
            self._names[id] = make_token(id, text if isinstance(text, str) else "", raw)
        return self._names[id], logprob(one.get("logprob"))


def sampling(decoding: Decoding, window: int = 0) -> dict[str, Any]:
    """A lane's settings in llama.cpp's names, with the samplers in the lane's own order.

    `window` is how many tokens a penalty looks back. Raises `BackendError` for a scope that is not there.
    """
    if decoding.repetition_penalty != 1 and decoding.penalty_scope != "all":
        raise BackendError("This server's penalty looks at prompt and answer alike; choose the scope all.")
    active = decoding.active_stages()
    samplers = [SAMPLERS[stage] for stage in active] + ["top_k"] * decoding.greedy
    return {
        "samplers": samplers, "temperature": 0.0 if decoding.greedy else decoding.temperature,
        "top_k": 1 if decoding.greedy else decoding.top_k, "top_p": 1.0 if decoding.greedy else decoding.top_p,
        "min_p": 0.0 if decoding.greedy else decoding.min_p,
        "typical_p": 1.0 if decoding.greedy else decoding.typical_p,
        "repeat_penalty": decoding.repetition_penalty, "repeat_last_n": window,
        "seed": (decoding.seed or 0) % 2**32, "presence_penalty": 0.0, "frequency_penalty": 0.0,
        "dry_multiplier": 0.0, "xtc_probability": 0.0, "dynatemp_range": 0.0, "mirostat": 0,
        "top_n_sigma": -1.0, "min_keep": 0, "ignore_eos": False,
    }  # fmt: skip
