"""A model behind a server as a backend: connect, probe, and run requests there.

Knows no page. Addresses that may not be asked are refused before anything is sent.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from playground.backends.protocol import BackendError
from playground.backends.remote.address import Address, read_address
from playground.backends.remote.capabilities import Capabilities
from playground.backends.remote.connection import SILENCE_SECONDS, Connection
from playground.backends.remote.dialect import ORDER_OF_ITS_OWN, Dialect
from playground.backends.remote.probing import probed
from playground.backends.remote.reach import Reach, anywhere
from playground.backends.remote.run import RemoteRun
from playground.backends.remote.usage import usage_of
from playground.core.control import Control
from playground.core.decoding import Decoding, InvalidSetting, validated
from playground.core.draws import fresh_seed
from playground.core.events import Event, Note
from playground.core.request import LANES_LIMIT, ModelFacts, Request
from playground.core.scoring import Scoring
from playground.core.tokens import Token

KEY_CHARACTERS_LIMIT = 500

NO_IDS = Note(
    "no_ids", "This server takes words, not token ids: the prompt is shown as one piece, and the "
    "numbers of tokens are made here.",
)  # fmt: skip


class RemoteBackend:
    """Runs requests on a server; lanes go there as requests at the same time."""

    def __init__(self, connection: Connection, dialect: Dialect, key: str = "") -> None:
        self._connection, self._dialect = connection, dialect
        self._usage = usage_of(connection.address.root, key, dialect.kv_share)

    def facts(self) -> ModelFacts:
        """The model as the server names it."""
        return self._dialect.facts

    @property
    def capabilities(self) -> Capabilities:
        """What the server can do, as it was found when the connection was made."""
        return self._dialect.capabilities

    @property
    def address(self) -> str:
        """Host and port."""
        return self._connection.address.shown

    @property
    def server(self) -> str:
        """What `--server` takes to reach the same one."""
        return self._connection.address.root

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt's tokens by the server's own template and tokenizer; raises `BackendError`."""
        if not self.capabilities.tokenizer.there:
            raise BackendError(
                "This server does not tell how it cuts a text; its tokens are seen when a run is made."
            )
        return self._dialect.tokens(prompt, chat=chat, system=system)

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        """The run's events. Raises `BackendError` or `InvalidSetting` before the first one."""
        if not 1 <= len(request.lanes) <= LANES_LIMIT:
            raise InvalidSetting(f"A run has 1 to {LANES_LIMIT} lanes, not {len(request.lanes)}.")
        wanted = tuple(_seeded(validated(lane)) for lane in request.lanes)
        for lane in wanted:
            self._require_kept(lane)
        lanes = tuple(self._dialect.settled(lane) for lane in wanted)
        request = replace(request, lanes=lanes, run=request.run or secrets.token_urlsafe(12))
        prompt, own = self._prompt(request)
        notes = self._dialect.notes if any(not lane.greedy for lane in lanes) else ()
        if [lane.active_stages() for lane in lanes] != [lane.active_stages() for lane in wanted]:
            notes = (*notes, ORDER_OF_ITS_OWN)
        if self.capabilities.prompt_ids.there:
            request = replace(request, prompt_ids=tuple(token.id for token in prompt))
        else:
            notes = (*notes, NO_IDS)
        self._require_room(len(prompt))
        return RemoteRun(self._dialect, self._usage, request, prompt, own, notes, control).events()

    def score(
        self, request: Request, text: str | None, *, top: int, control: Control,
        progress: Callable[[int, int], None] | None = None,
    ) -> Scoring:  # fmt: skip
        """How probable `text` is after the request's prompt, where the server reads a prompt's probabilities."""
        if not self.capabilities.prompt_logprobs.there:
            raise BackendError(
                "This server gives no probabilities for a given text; ask a model of this machine, or vLLM."
            )
        return self._dialect.score(request, text, top)

    def continuation(self, before: Sequence[Token], text: str) -> tuple[tuple[Token, ...], tuple[Note, ...]]:
        """The tokens of `text`, cut alone by the server, as they are put behind `before`."""
        if not self.capabilities.prompt_ids.there:
            raise BackendError("This server takes no token ids, so no token can be put; begin a new run.")
        return tuple(self._dialect.cut(text)), ()

    def kept(self) -> tuple[int, int]:
        """Nothing is kept here; what the server keeps is its own affair."""
        return 0, 0

    def forget(self, run: str) -> None:
        """Nothing of a run is kept here; the server keeps prefixes by itself."""

    def _prompt(self, request: Request) -> tuple[list[Token], list[bool]]:
        if request.prompt_ids is None:
            return self._dialect.tokens(request.prompt, chat=request.chat, system=request.system)
        if not self.capabilities.prompt_ids.there:
            raise BackendError(
                "This server takes no token ids, so a run cannot be continued from a step; begin a new one."
            )
        if not request.prompt_ids or any(
            type(i) is not int or not 0 <= i < 2**31 for i in request.prompt_ids
        ):
            raise BackendError("prompt_ids must be a list of at least one token id.")
        prompt = self._dialect.named(request.prompt_ids)
        return prompt, [not token.special for token in prompt]

    def _require_kept(self, lane: Decoding) -> None:
        if lane.bias or lane.banned:
            raise BackendError(
                "Behind a server no token can be favoured or banned; use a model of this machine."
            )
        if lane.forced and not self.capabilities.prompt_ids.there:
            raise BackendError("This server takes no token ids, so no token can be put; begin a new run.")

    def _require_room(self, prompt_tokens: int) -> None:
        context = self.facts().context
        if context is not None and prompt_tokens >= context:
            raise BackendError(
                f"The prompt has {prompt_tokens:,} tokens and this server reads at most {context:,}; shorten it."
            )


def connect(
    address: object, key: object = "", model: str | None = None,
    reach: Callable[[Address], Reach | None] = lambda address: anywhere,
    silence_seconds: float = SILENCE_SECONDS,
) -> RemoteBackend:  # fmt: skip
    """Probe the server at `address` and take `model` of those it has, its first one without.

    `reach` says how far a connection may go, None that it may not be made. Raises `BackendError` for an address
    that cannot be one or is not allowed, `ServerFault` where the server does not answer as a model server does.
    """
    where, secret = read_address(address), key.strip() if isinstance(key, str) else ""
    if len(secret) > KEY_CHARACTERS_LIMIT or not secret.isascii() or not (secret.isprintable() or not secret):
        raise BackendError("This is no key: it must be at most 500 plain characters.")
    far = reach(where)
    if far is None:
        raise BackendError(
            "This page does not connect to that address; ask whoever runs it to allow it, or run First Token yourself."
        )
    reached = "" if far is anywhere else far(where.root)
    connection = Connection(where, secret, silence_seconds, reached)
    return RemoteBackend(connection, probed(connection, model), secret)


def _seeded(decoding: Decoding) -> Decoding:
    return decoding if decoding.seed is not None else replace(decoding, seed=fresh_seed())
