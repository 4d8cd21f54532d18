"""OpenAI's `/v1/chat/completions` with logprobs: what any server with that API can do, and no more.

It takes words and gives words: there are no ids, so numbers are made here, one for each piece of bytes.
Knows no run.
"""

import threading
from collections.abc import Iterator
from typing import Any

from playground.backends.protocol import BackendError
from playground.backends.remote.answers import Answer, Ended, answer, logprob, make_token, token_bytes
from playground.backends.remote.capabilities import YES, Capabilities, Capability
from playground.backends.remote.completions import read_choice
from playground.backends.remote.connection import Connection
from playground.backends.remote.dialect import DRAWS, Asked, Opened
from playground.backends.remote.facts import remote_facts
from playground.backends.remote.faults import NO_LOGPROBS_SENT, ServerFault
from playground.backends.remote.openai_server import Served, messages
from playground.core.decoding import Decoding
from playground.core.events import Distribution, Note
from playground.core.request import Request
from playground.core.scoring import Scoring
from playground.core.tokens import Token

TOP_LIMIT = 20
NUMBERS_LIMIT = 200_000


class Chat:
    """One model behind `/v1/chat/completions`."""

    distribution: Distribution = "raw"
    notes: tuple[Note, ...] = (DRAWS,)

    def __init__(self, connection: Connection, served: Served) -> None:
        self._connection, self._served = connection, served
        self._numbers: dict[str, int] = {}
        self._lock = threading.Lock()
        self.facts = remote_facts(served.id, "OpenAI API", connection.address, context=served.context)
        words = Capability(False, "words_only")
        self.capabilities = Capabilities(
            prompt_ids=words, tokenizer=Capability(False, "no_tokenize"),
            candidate_ids=Capability(False, "ids_made_here"), raw=YES,
            stages=Capability(False, "few_settings"),
            prompt_logprobs=Capability(False, "no_prompt_logprobs"),
            usage=Capability(False, "no_metrics"), reuse=Capability(False, "no_reuse"),
        )  # fmt: skip

    def settled(self, decoding: Decoding) -> Decoding:
        """Temperature and top-p alone reach the server; raises `BackendError` for anything else."""
        others = set(decoding.active_stages()) - {"temperature", "top_p"}
        if others:
            names = ", ".join(sorted(others))
            raise BackendError(f"This server takes temperature and top-p alone; turn off {names}.")
        return decoding

    def tokens(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The words as one piece: how the server cuts them is not told."""
        if not chat:
            raise BackendError("This server takes messages of a chat alone; choose chat.")
        if not prompt:
            raise BackendError("The prompt is empty; type something for the model to continue.")
        return [make_token(0, prompt, None)], [True]

    def named(self, ids: tuple[int, ...]) -> list[Token]:
        """Never: there are no ids."""
        raise BackendError("This server takes no token ids; begin a new run.")

    def cut(self, text: str) -> list[Token]:
        """Never: there are no ids."""
        return self.named(())

    def score(self, request: Request, text: str | None, top: int) -> Scoring:
        """Never there."""
        raise NotImplementedError

    def kv_share(self) -> float | None:
        """Not told."""
        return None

    def answers(self, asked: Asked, opened: Opened) -> Iterator[Answer | Ended]:
        """One streamed chat completion."""
        decoding = asked.decoding
        body = {
            "model": self._served.id, "messages": messages(asked.prompt, asked.system), "stream": True, "n": 1,
            "logprobs": True, "top_logprobs": min(TOP_LIMIT, max(1, asked.top_n)),
            "max_tokens": decoding.max_new_tokens, "temperature": 0.0 if decoding.greedy else decoding.temperature,
            "top_p": 1.0 if decoding.greedy else decoding.top_p, "seed": (decoding.seed or 0) % 2**63,
            "presence_penalty": 0.0, "frequency_penalty": 0.0,
        }  # fmt: skip
        with self._connection.stream("/v1/chat/completions", body) as (objects, close):
            opened(close)
            for data in objects:
                choice = read_choice(data)
                if choice is None:
                    continue
                yield from self._read(choice)
                if isinstance(choice.get("finish_reason"), str):
                    yield Ended(choice["finish_reason"])
                    return

    def _read(self, choice: dict[str, Any]) -> Iterator[Answer]:
        found, delta = choice.get("logprobs"), choice.get("delta")
        content = found.get("content") if isinstance(found, dict) else None
        if not isinstance(content, list):
            if isinstance(delta, dict) and delta.get("content"):
                raise ServerFault(NO_LOGPROBS_SENT)
            return
        for one in content:
            token, own = self._candidate(one)
            top = one.get("top_logprobs")
            if not isinstance(top, list):
                raise ServerFault(NO_LOGPROBS_SENT)
            yield answer(token, own, [self._candidate(other) for other in top])

    def _candidate(self, one: Any) -> tuple[Token, float]:
        if not isinstance(one, dict) or not isinstance(one.get("token"), str):
            raise ServerFault(NO_LOGPROBS_SENT)
        text, raw = one["token"], token_bytes(one.get("bytes"))
        token = make_token(0, text, raw)
        return Token(self._number(token.bytes), token.text, token.bytes), logprob(one.get("logprob"))

    def _number(self, raw: str) -> int:
        with self._lock:
            if len(self._numbers) >= NUMBERS_LIMIT:
                self._numbers.clear()
            return self._numbers.setdefault(raw, len(self._numbers) + 1)
