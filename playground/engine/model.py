"""A loaded model: the module, its tokenizer, what is known of it, and its queue of turns.

Knows nothing of how it was found; `load` builds it.
"""

from dataclasses import dataclass, field
from typing import Any

from playground.core.decoding import Decoding
from playground.core.kv import CacheSpec
from playground.core.request import ModelFacts
from playground.engine.cache import forward
from playground.engine.kept import KeptLogits
from playground.engine.lean import LeanStep
from playground.engine.placement import computing_device
from playground.engine.store import CacheStore
from playground.engine.turns import Turns
from playground.engine.vocabulary import Vocabulary


@dataclass(slots=True)
class LoadedModel:
    """Everything a run needs.

    `module` is a transformers causal language model in eval mode on its device, `tokenizer` its
    tokenizer. `stop_ids` end an answer (from the generation config, else the tokenizer).
    `suggested` are the sampling settings that the model's authors ship, as a preset; they never
    act by themselves. `lean_step` is the decode step of a model shaped like Llama, else None. `warm` is
    false until a first run has paid the one-time work.
    """

    module: Any
    tokenizer: Any
    facts: ModelFacts
    spec: CacheSpec | None
    stop_ids: frozenset[int]
    load_seconds: float
    suggested: Decoding | None = None
    lean_step: LeanStep | None = None
    turns: Turns = field(default_factory=Turns)
    caches: CacheStore = field(default_factory=CacheStore)
    kept: KeptLogits = field(default_factory=KeptLogits)
    vocabulary: Vocabulary = field(init=False)
    warm: bool = False

    def __post_init__(self) -> None:
        self.vocabulary = Vocabulary(self.tokenizer, self.facts.vocabulary)

    @property
    def device(self) -> Any:
        """The torch device that takes the token ids."""
        return computing_device(self.module)

    def forward(self, ids: Any, cache: Any) -> Any:
        """Append `ids` (rows, positions) to `cache`; the last position's logits (rows, vocabulary), fp32."""
        if self.lean_step is not None and cache is not None and ids.shape[1] == 1:
            return self.lean_step(ids, cache)
        return forward(self.module, ids, cache)
