"""The vocabulary of a run: what a backend yields, in order, while it works.

Everything a page, a terminal, a file or a test shows is folded from these. Events are frozen,
hold ints, floats, strings and tuples of them, and never a tensor. Clocks are seconds since the
request was started in the engine. `lane` is None where an event speaks of all lanes.

A run of two lanes reads: Started, Prefilling..., Prefilled, Stepped (lane 0), Stepped (lane 1),
Stepped (lane 0), ..., Finished (lane 1), ..., Finished (lane 0).
"""

from dataclasses import dataclass
from typing import Literal

from playground.core.decoding import Decoding
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Candidate, Expected, Token

Distribution = Literal["raw", "after_temperature", "processed"]
Origin = Literal["argmax", "drawn", "forced", "draft", "beam"]
FinishReason = Literal["stop_token", "stop_string", "max_new_tokens", "context_limit", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something the user should know of a run: a stable key to translate by, and English.

    `detail` is the part of the sentence that belongs to this run, a token's text for example.
    """

    key: str
    text: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Started:
    """The request as it will be run: prompt ids and seeds are filled in, nothing is left to default.

    `prompt` are the prompt's tokens in order; `own` marks those that are the user's words, the
    others come from the chat template or the tokenizer.
    """

    run: str
    request: Request
    model: ModelFacts
    prompt: tuple[Token, ...]
    own: tuple[bool, ...] = ()
    notes: tuple[Note, ...] = ()
    load_seconds: float | None = None
    lane: int | None = None


@dataclass(frozen=True, slots=True)
class Prefilling:
    """Part of the prompt has been read."""

    run: str
    done_tokens: int
    total_tokens: int
    seconds: float
    lane: int | None = None


@dataclass(frozen=True, slots=True)
class Prefilled:
    """The prompt is in the cache, once for all lanes. Bytes are those of one sequence.

    `tokens_reused` were taken over from the cache of an earlier run; `notes` say why more could not be.
    `warm_up` marks the first run of a loaded model, whose clock includes one-time work;
    `queue_seconds` is the wait for the model before the prefill, which no other clock includes.
    """

    run: str
    tokens_computed: int
    tokens_reused: int
    start_seconds: float
    end_seconds: float
    kv_tokens: int
    kv_used_bytes: int | None
    kv_allocated_bytes: int | None
    warm_up: bool = False
    kv_predicted_bytes: int | None = None
    queue_seconds: float = 0.0
    lane: int | None = None
    notes: tuple[Note, ...] = ()
    kv_state_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """From here on the run goes on from its own token number `step`, or from that of the run `parent`.

    The steps before were made under the settings before, `decoding` are those after. `tokens_reused` were
    taken from the cache that was kept, `tokens_computed` read again; `saved_seconds` is an estimate: the
    reused ones at the rate of the first prefill.
    """

    run: str
    lane: int
    step: int
    decoding: Decoding
    tokens_computed: int
    tokens_reused: int
    start_seconds: float
    end_seconds: float
    parent: str = ""
    saved_seconds: float | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class StageRecord:
    """One stage at one step: how many candidates it left, and the mass that is left.

    The mass is the product of what this stage and each before it kept of its own input's probability,
    so that a stage's share is its mass by that of the stage before (1 before the first). Penalties and
    temperature keep all. Where they come first, as in transformers, the mass is that of the survivors
    under the distribution after them, before the filters. The share of "greedy" is that of the token
    taken, under the raw distribution.
    """

    name: str
    kept_count: int
    kept_mass: float


@dataclass(frozen=True, slots=True)
class Stepped:
    """One token chosen for one lane.

    Step 0 is chosen from the prefill's logits, so its clock holds the choice alone; each later
    step is one decode step. `position` is the token's place in the sequence. `text` is what this
    token adds to the decoded text (an unfinished character is held until its last byte), so that
    the texts joined are the decoding of all ids. `kv_*` describe this lane's cache when the token
    was chosen, measured: used and allocated bytes of what grows, and apart from it `kv_state_bytes` of
    what has one size at any length. `kv_predicted_bytes` is the arithmetic of what grows for as many
    tokens, as theory has it; `kv_reasons` of the model say why a live cache may hold less or more. The
    token itself enters the cache at the next step. `held_characters` is the length of the
    text's end that may yet become a stop string and is not shown so far.

    Behind a server: `distribution` is what it calls a logprob, which stands in the raw fields; `inexact` names the
    fields that its few candidates do not determine (`raw_rank` and `raw_entropy_bits` are then at least so much,
    the others approximate); `logsumexp` is None, and `server_kv_share` is the share of the server's whole cache
    that all its users held, at most a second or so ago, where it tells.
    """

    run: str
    lane: int
    step: int
    position: int
    token: Token
    text: str
    raw_rank: int
    raw_logprob: float
    processed_probability: float
    draw: float | None
    origin: Origin
    candidates: tuple[Candidate, ...]
    logsumexp: float | None
    raw_entropy_bits: float
    processed_entropy_bits: float
    kept_count: int
    kept_mass: float
    stages: tuple[StageRecord, ...]
    start_seconds: float
    end_seconds: float
    kv_tokens: int
    kv_used_bytes: int | None
    kv_allocated_bytes: int | None
    positions_computed: int
    positions_reused: int
    parent: int | None = None
    held_characters: int = 0
    kv_predicted_bytes: int | None = None
    kv_state_bytes: int | None = None
    distribution: Distribution = "raw"
    inexact: tuple[str, ...] = ()
    server_kv_share: float | None = None


@dataclass(frozen=True, slots=True)
class Drafted:
    """Tokens proposed ahead of the model, before it has judged them (speculation)."""

    run: str
    lane: int
    step: int
    tokens: tuple[Token, ...]
    accepted: int


@dataclass(frozen=True, slots=True)
class Beam:
    """One live beam: its tokens come from `parent`'s beam plus `token`."""

    parent: int
    token: Token
    score: float
    normalised_score: float
    finished: bool


@dataclass(frozen=True, slots=True)
class BeamStep:
    """The beams that survive one step of a beam search."""

    run: str
    lane: int
    step: int
    beams: tuple[Beam, ...]


@dataclass(frozen=True, slots=True)
class LayerKv:
    """What one layer holds of one sequence, read off the live cache: as `Stepped` tells it of all layers."""

    used_bytes: int
    allocated_bytes: int
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """A lane has ended. `tail` is text that was still held back as an unfinished character.

    `withheld_steps` counts the trailing steps of which a stop string took text away;
    `text` is what a reader of the answer sees. `kv_layers` are the layers of the lane's cache at its end, in
    order; empty where they were not read.
    """

    run: str
    lane: int
    reason: FinishReason
    text: str
    seconds: float
    tail: str = ""
    stop_string: str | None = None
    withheld_steps: int = 0
    forwards_wasted: int = 0
    kv_layers: tuple[LayerKv, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """A lane could not go on; what it had is kept. `message` is one sentence."""

    run: str
    lane: int | None
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Read:
    """One token of a prompt under the model's raw distribution at its place, and what was expected there.

    `rank` counts from 1, ties by id. `logprob` is None where the token was impossible. Everything is None, and
    nothing was expected, for the first token: nothing comes before it.
    """

    rank: int | None = None
    logprob: float | None = None
    entropy_bits: float | None = None
    expected: tuple[Expected, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptRead:
    """What the model thought of each token of the prompt; asked for after the run, by a reading of its own.

    `tokens` are in the order of `Started.prompt`; `seconds` is the time of that reading.
    """

    run: str
    tokens: tuple[Read, ...]
    seconds: float
    lane: int | None = None


Event = (
    Started | Prefilling | Prefilled | Resumed | Stepped | Drafted | BeamStep | Finished | Failed | PromptRead
)
