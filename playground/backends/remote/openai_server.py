"""A server with OpenAI's API: its models, its tokenizer and its metrics, where it has them.

vLLM and SGLang tell more than the API itself; what is there is found by asking. Knows no run.
"""

import re
from dataclasses import dataclass
from typing import Any

from playground.backends.protocol import BackendError
from playground.backends.remote.answers import make_token, whole
from playground.backends.remote.connection import Connection
from playground.backends.remote.dialect import own_words
from playground.backends.remote.faults import NOT_JSON, ServerFault
from playground.core.tokens import Token

_GAUGES = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
_SPECIAL = re.compile(r"<\|[^|]*\|>|</?s>|<(?:bos|eos|pad|unk|start_of_turn|end_of_turn)>")
_STAND_IN = "the-words-of-the-user"
KNOWN_PIECES_LIMIT = 200_000
ABSENT = (400, 404, 405, 422, 501)
"""What a server answers that does not have what is asked for; anything else is a fault of its own."""


@dataclass(frozen=True, slots=True)
class Served:
    """One model of a server: `context` is None where it does not tell, `owner` who serves it."""

    id: str
    owner: str
    context: int | None


def served_model(connection: Connection, wanted: str | None) -> Served:
    """The model of that name, the first one without a name; raises `ServerFault` where there is none."""
    answer = connection.ask("/v1/models")
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list):
        raise ServerFault(NOT_JSON)
    models = [one for one in data if isinstance(one, dict) and isinstance(one.get("id"), str)]
    if not models:
        raise ServerFault("The server's list of models is empty; start it with one and connect again.")
    found = next((one for one in models if wanted is None or one["id"] == wanted), None)
    if found is None:
        names = ", ".join(str(one["id"])[:60] for one in models[:5])
        raise ServerFault(f"The server has no such model; it has {names}.")
    owner = found.get("owned_by")
    return Served(
        found["id"], owner[:40] if isinstance(owner, str) else "", whole(found.get("max_model_len"))
    )


class Pieces:
    """The server's own tokenizer over `/tokenize` and `/detokenize`; each id is asked for once."""

    def __init__(self, connection: Connection, model: str) -> None:
        self._connection, self._model = connection, model
        self._known: dict[int, Token] = {}

    def there(self) -> bool:
        """Whether the server has both."""
        try:
            return bool(self.named(self._cut({"prompt": "a", "add_special_tokens": False})))
        except ServerFault as fault:
            if fault.status not in ABSENT:
                raise
            return False

    def tokens(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt by the server's template and tokenizer, and which tokens are the user's words."""
        if not prompt:
            raise BackendError("The prompt is empty; type something for the model to continue.")
        if not chat:
            found = self.named(self._cut({"prompt": prompt, "add_special_tokens": True}))
            return found, [not token.special for token in found]
        found = self.named(self._cut(_chat(prompt, system)))
        frame = self.named(self._cut(_chat(_STAND_IN, system)))
        before, _, after = "".join(token.text for token in frame).rpartition(_STAND_IN)
        return found, own_words([token.bytes for token in found], prompt, (before, after))

    def named(self, ids: tuple[int, ...] | list[int]) -> list[Token]:
        """The tokens of ids."""
        return [self.token(id) for id in ids]

    def token(self, id: int, text: str | None = None) -> Token:
        """The token of `id`; what the server says it reads alone, where `text` does not tell."""
        if id not in self._known:
            if text is None or "\ufffd" in text:
                text = self._text(id)
            special = _SPECIAL.fullmatch(text) is not None
            if len(self._known) < KNOWN_PIECES_LIMIT:
                self._known[id] = make_token(id, text, None, special)
            return make_token(id, text, None, special)
        return self._known[id]

    def cut(self, text: str) -> list[int]:
        """The ids of a text that continues another one."""
        return self._cut({"prompt": text, "add_special_tokens": False})

    def _cut(self, data: dict[str, Any]) -> list[int]:
        found = self._connection.ask("/tokenize", {"model": self._model, **data})
        ids = found.get("tokens") if isinstance(found, dict) else None
        if not isinstance(ids, list) or not ids or any(type(id) is not int or id < 0 for id in ids):
            raise ServerFault("The server's tokenizer makes no token of this prompt; type something else.")
        return ids

    def _text(self, id: int) -> str:
        found = self._connection.ask("/detokenize", {"model": self._model, "tokens": [id]})
        text = found.get("prompt") if isinstance(found, dict) else None
        return text if isinstance(text, str) else ""


def kv_share(connection: Connection) -> float | None:
    """The share of the server's cache in use, by its metrics; None where it gives none."""
    for line in connection.text("/metrics").splitlines():
        name, _, value = line.rpartition(" ")
        if name.partition("{")[0] in _GAUGES:
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return None
    return None


def _chat(prompt: str, system: str | None) -> dict[str, Any]:
    return {"messages": messages(prompt, system), "add_generation_prompt": True, "add_special_tokens": False}


def messages(prompt: str, system: str | None) -> list[dict[str, str]]:
    """A conversation of one turn."""
    first = [{"role": "system", "content": system}] if system else []
    return [*first, {"role": "user", "content": prompt}]
