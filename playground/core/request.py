"""What is asked of a backend: a prompt, and one set of decoding settings a lane.

A request is a value that survives in a trace. It may name its prompt as text (the engine renders
and tokenizes it) or as ids (used as they are). Knows no tokenizer and no model object.
"""

from dataclasses import dataclass

from playground.core.decoding import Decoding

PROMPT_CHARACTERS_LIMIT = 400_000
LANES_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Parent:
    """Where an earlier run's lane is continued: this run's first step is `step` of the whole story.

    The prompt's ids end with the `step` tokens that were chosen (or put in their place) before. Steps
    are counted from the first ancestor's prompt, so that draws are the same after any rewind: a branch
    at the 5th token of a run that itself began at step 10 has step 15. `run` must be known here for its
    cache to be reused; the result is the same without.
    """

    run: str
    step: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One run to be made.

    `chat` renders `prompt` (and `system`, where given) with the model's template; raw follows the
    tokenizer alone. `prompt_ids` set by the caller wins over the text. `top_n` candidates are
    recorded at each step. `run` is the run's id; the backend draws one where it is empty. Not `cached`
    keeps no keys and values: every step reads the whole text again.
    """

    prompt: str = ""
    lanes: tuple[Decoding, ...] = (Decoding(),)
    chat: bool = True
    system: str | None = None
    prompt_ids: tuple[int, ...] | None = None
    top_n: int = 20
    parent: Parent | None = None
    run: str = ""
    cached: bool = True


@dataclass(frozen=True, slots=True)
class Reason:
    """Why what is measured may differ from the arithmetic: a stable key to translate by, and English."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The model behind a run, as far as a reader of the record needs it.

    `kv_bytes_per_token` is arithmetic on the config (of one sequence), None where unknown;
    `kv_formula` holds its factors: layers, KV heads, head dimension, bytes per number, where all layers
    that attend have the same. `kv_context_bytes` is the same arithmetic at the full context, where windows
    have stopped growing, and `kv_state_bytes` that of the constant state; both of one sequence.
    `kv_reasons` say why a live cache of this model differs from the arithmetic, where it does.
    `memory_bytes` is what the device has in all, None where unknown. `weights` names how the matrices are
    stored where that is not `dtype`, in which the model computes and keeps its cache. `weights_places` are the
    bytes of them in each place (`cuda:0`, `cpu`, `disk`) where one device does not hold them all.
    """

    name: str
    revision: str | None
    device: str
    dtype: str
    vocabulary: int
    context: int | None
    kv_bytes_per_token: int | None = None
    kv_formula: tuple[int, int, int, int] | None = None
    query_heads: int | None = None
    weights_bytes: int | None = None
    memory_bytes: int | None = None
    device_name: str = ""
    chat_template: bool = True
    kv_context_bytes: int | None = None
    kv_state_bytes: int | None = None
    kv_reasons: tuple[Reason, ...] = ()
    weights: str = ""
    weights_places: tuple[tuple[str, int], ...] = ()
