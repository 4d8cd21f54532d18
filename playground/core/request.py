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
    """The step of an earlier run that this one continues; its draws go on from there."""

    run: str
    step: int
    lane: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One run to be made.

    `chat` renders `prompt` (and `system`, where given) with the model's template; raw follows the
    tokenizer alone. `prompt_ids` set by the caller wins over the text. `top_n` candidates are
    recorded at each step. `run` is the run's id; the backend draws one where it is empty.
    """

    prompt: str = ""
    lanes: tuple[Decoding, ...] = (Decoding(),)
    chat: bool = True
    system: str | None = None
    prompt_ids: tuple[int, ...] | None = None
    top_n: int = 20
    parent: Parent | None = None
    run: str = ""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The model behind a run, as far as a reader of the record needs it.

    `kv_bytes_per_token` is arithmetic on the config (of one sequence), None where unknown;
    `kv_formula` holds its factors: layers, KV heads, head dimension, bytes per number.
    `memory_bytes` is what the device has in all, None where unknown.
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
