"""OpenAI's `/v1/completions` with token ids, as vLLM speaks it (and SGLang in part).

Prompts go as ids, candidates come back as ids. Knows no run.
"""

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic
from typing import Any

from playground.backends.protocol import BackendError
from playground.backends.remote.answers import Answer, Ended, answer, logprob
from playground.backends.remote.capabilities import YES, Capabilities, Capability
from playground.backends.remote.connection import Connection
from playground.backends.remote.dialect import DRAWS, Asked, Opened
from playground.backends.remote.facts import remote_facts
from playground.backends.remote.faults import CUT, NO_LOGPROBS_SENT, NOT_JSON, ServerFault
from playground.backends.remote.openai_server import Pieces, Served, kv_share
from playground.core.decoding import Decoding
from playground.core.events import Distribution, Note
from playground.core.request import Request
from playground.core.scoring import Scored, Scoring
from playground.core.stages import Stage
from playground.core.tokens import Expected, Token

TOP_LIMIT = 20
"""The most candidates that vLLM gives unless it is told otherwise."""
ORDER: tuple[Stage, ...] = ("repetition_penalty", "temperature", "min_p", "top_k", "top_p", "typical_p")
"""The order in which vLLM's sampler applies its stages."""
_PREFIX = "token_id:"


class Completions:
    """One model behind `/v1/completions` that takes and gives token ids."""

    notes: tuple[Note, ...] = (DRAWS,)

    def __init__(self, connection: Connection, served: Served, metrics: bool, prompt_logprobs: bool) -> None:
        self._connection, self._served, self._metrics = connection, served, metrics
        self._pieces = Pieces(connection, served.id)
        sglang = served.owner.lower() == "sglang"
        self.distribution: Distribution = "after_temperature" if sglang else "raw"
        server = {"vllm": "vLLM", "sglang": "SGLang"}.get(served.owner.lower(), "OpenAI API")
        self.facts = remote_facts(served.id, server, connection.address, context=served.context)
        self.capabilities = Capabilities(
            prompt_ids=YES, tokenizer=YES, candidate_ids=YES,
            raw=Capability(False, "after_temperature") if sglang else YES,
            stages=Capability(False, "fixed_order"),
            prompt_logprobs=YES if prompt_logprobs else Capability(False, "no_prompt_logprobs"),
            usage=YES if metrics else Capability(False, "no_metrics"), reuse=Capability(False, "no_reuse"),
        )  # fmt: skip

    def settled(self, decoding: Decoding) -> Decoding:
        """The lane as the server will do it; raises `BackendError` for what it cannot."""
        if decoding.typical_p != 1 and not decoding.greedy:
            raise BackendError("This server has no typical-p; set it to 1, which is off.")
        if decoding.repetition_penalty != 1 and decoding.penalty_scope != "all":
            raise BackendError(
                "This server's penalty looks at prompt and answer alike; choose the scope all."
            )
        return replace(decoding, order=ORDER)

    def tokens(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt by the server's own tokenizer."""
        return self._pieces.tokens(prompt, chat=chat, system=system)

    def named(self, ids: tuple[int, ...]) -> list[Token]:
        """The tokens of ids."""
        return self._pieces.named(ids)

    def cut(self, text: str) -> list[Token]:
        """A text by itself, no beginning of one."""
        return self._pieces.named(self._pieces.cut(text))

    def answers(self, asked: Asked, opened: Opened) -> Iterator[Answer | Ended]:
        """One streamed completion."""
        body = self._body(asked.ids or (), asked.top_n) | sampling(asked.decoding) | {"stream": True}
        with self._connection.stream("/v1/completions", body) as (objects, close):
            opened(close)
            for data in objects:
                choice = read_choice(data)
                if choice is None:
                    continue
                yield from self._read(choice)
                if isinstance(choice.get("finish_reason"), str):
                    yield Ended(choice["finish_reason"])
                    return

    def score(self, request: Request, text: str | None, top: int) -> Scoring:
        """The probability of each token of `text` after the prompt, read in one forward."""
        began = monotonic()
        prompt, _ = (
            (self.named(request.prompt_ids), [])
            if request.prompt_ids is not None
            else self.tokens(request.prompt, chat=request.chat, system=request.system)
        )
        own = self._pieces.named(self._pieces.cut(text)) if text is not None else []
        tokens = [*prompt, *own]
        body = self._body(tuple(token.id for token in tokens), 1) | sampling(Decoding()) | {
            "stream": False, "max_tokens": 1, "prompt_logprobs": min(TOP_LIMIT, max(1, top)),
        }  # fmt: skip
        choice = read_choice(self._connection.ask("/v1/completions", body)) or {}
        found = choice.get("prompt_logprobs")
        if not isinstance(found, list) or len(found) != len(tokens):
            raise ServerFault(NO_LOGPROBS_SENT)
        first = len(prompt) if text is not None else 0
        scored = tuple(self._scored(i, tokens[i], found[i], top) for i in range(first, len(tokens)))
        return Scoring(self.facts, scored, text, first or len(prompt), monotonic() - began)

    def kv_share(self) -> float | None:
        """By the server's metrics."""
        return kv_share(self._connection) if self._metrics else None

    def _body(self, ids: tuple[int, ...], top_n: int) -> dict[str, Any]:
        return {
            "model": self._served.id, "prompt": list(ids), "logprobs": min(TOP_LIMIT, max(1, top_n)),
            "return_tokens_as_token_ids": True, "add_special_tokens": False, "skip_special_tokens": False,
            "echo": False, "n": 1,
        }  # fmt: skip

    def _read(self, choice: dict[str, Any]) -> Iterator[Answer]:
        found = choice.get("logprobs")
        if not isinstance(found, dict):
            if choice.get("text"):
                raise ServerFault(NO_LOGPROBS_SENT)
            return
        names, values, tops = (found.get(key) for key in ("tokens", "token_logprobs", "top_logprobs"))
        if not (isinstance(names, list) and isinstance(values, list) and isinstance(tops, list)):
            raise ServerFault(NO_LOGPROBS_SENT)
        if not len(names) == len(values) == len(tops):
            raise ServerFault(NO_LOGPROBS_SENT)
        for name, value, top in zip(names, values, tops, strict=True):
            if not isinstance(top, dict):
                raise ServerFault(NO_LOGPROBS_SENT)
            yield answer(
                self._token(name), logprob(value), [(self._token(k), logprob(v)) for k, v in top.items()]
            )

    def _token(self, name: Any) -> Token:
        number = name.removeprefix(_PREFIX) if isinstance(name, str) and name.startswith(_PREFIX) else ""
        if not number.isdecimal() or len(number) > 12:
            raise ServerFault(NOT_JSON)
        return self._pieces.token(int(number))

    def _scored(self, position: int, token: Token, found: Any, top: int) -> Scored:
        if found is None and position == 0:
            return Scored(position, token)
        own = found.get(str(token.id)) if isinstance(found, dict) else None
        if not isinstance(own, dict) or type(own.get("rank")) is not int:
            raise ServerFault(NO_LOGPROBS_SENT)
        ranked = sorted(
            (one["rank"], int(id), one) for id, one in found.items()
            if isinstance(one, dict) and type(one.get("rank")) is int and id.isdecimal()
        )  # fmt: skip
        expected = tuple(
            Expected(self._pieces.token(id), logprob(one.get("logprob"))) for _, id, one in ranked[:top]
        )
        return Scored(position, token, own["rank"], logprob(own.get("logprob")), None, expected)


def read_choice(data: Any) -> dict[str, Any] | None:
    """The one choice of a chunk; None for a chunk of usage alone."""
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list):
        raise ServerFault(NOT_JSON)
    if not choices:
        return None
    if not isinstance(choices[0], dict):
        raise ServerFault(CUT)
    return choices[0]


def sampling(decoding: Decoding) -> dict[str, Any]:
    """A lane's settings in vLLM's names, every one of them."""
    drawn = not decoding.greedy
    return {
        "max_tokens": decoding.max_new_tokens, "temperature": decoding.temperature if drawn else 0.0,
        "top_p": decoding.top_p if drawn else 1.0, "top_k": decoding.top_k if drawn and decoding.top_k else -1,
        "min_p": decoding.min_p if drawn else 0.0, "repetition_penalty": decoding.repetition_penalty,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "seed": (decoding.seed or 0) % 2**63,
        "ignore_eos": False, "stop": [],
    }  # fmt: skip
