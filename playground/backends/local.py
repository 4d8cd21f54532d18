"""The model in this process as a backend: the engine, its refusals turned into `BackendError`.

Knows no page, and no torch beyond what the engine does with it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from playground.backends.protocol import BackendError
from playground.core.control import Control
from playground.core.cost import Device, Shape
from playground.core.decoding import Decoding
from playground.core.events import Event, Note, PromptRead
from playground.core.experiment import Experiment, Progressed
from playground.core.kv import CacheSpec
from playground.core.race import Item
from playground.core.request import ModelFacts, Request
from playground.core.run import Run
from playground.core.scoring import Divergence, Scoring
from playground.core.tokens import Token
from playground.core.waterfall import StepWaterfall
from playground.core.what_if import RunWhatIf, StepWhatIf, TextOdds
from playground.engine.continuation import encode_continuation
from playground.engine.costing import cost_shape
from playground.engine.decode import stream
from playground.engine.divergence import divergence
from playground.engine.errors import RequestError
from playground.engine.experiments import EXPERIMENTS
from playground.engine.inspection import prompt_read, step_waterfall
from playground.engine.model import LoadedModel
from playground.engine.probe import known, probe
from playground.engine.prompts import encode_prompt
from playground.engine.race import race
from playground.engine.room import free_bytes
from playground.engine.score import OnProgress, score
from playground.engine.vocabulary import Vocabulary
from playground.engine.what_if import text_odds, what_if, what_if_run


class LocalTokenizer:
    """A tokenizer without its model."""

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary | None = None) -> None:
        self._tokenizer, self._vocabulary = tokenizer, vocabulary or Vocabulary(tokenizer)

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """As `LocalBackend.tokenize`."""
        try:
            found = encode_prompt(
                self._tokenizer, self._vocabulary, Request(prompt, chat=chat, system=system)
            )
        except RequestError as error:
            raise BackendError(str(error)) from None
        return list(found.tokens), list(found.own)


class LocalBackend:
    """Runs requests on `model`; several at once take turns, one forward each."""

    def __init__(self, model: LoadedModel) -> None:
        self.model = model

    def facts(self) -> ModelFacts:
        """The loaded model."""
        return self.model.facts

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt's tokens as a run would read them, and which are the user's own text.

        Raises `BackendError` for an empty or unreadable prompt.
        """
        own = LocalTokenizer(self.model.tokenizer, self.model.vocabulary)
        return own.tokenize(prompt, chat=chat, system=system)

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        """The engine's events. Raises `BackendError` or `InvalidSetting` before the first one."""
        try:
            return stream(self.model, request, control=control)
        except RequestError as error:
            raise BackendError(str(error)) from None

    def continuation(self, before: Sequence[Token], text: str) -> tuple[tuple[Token, ...], tuple[Note, ...]]:
        """The tokens of `text` as they are put behind the tokens `before`, and what is to be said of the seam.

        Raises `BackendError` for a text that is empty or unreadable.
        """
        try:
            return encode_continuation(self.model.tokenizer, self.model.vocabulary, before, text)
        except RequestError as error:
            raise BackendError(str(error)) from None

    def kept(self) -> tuple[int, int]:
        """Bytes of the caches that are kept to go on from, and the most that they may take."""
        return self.model.caches.held_bytes, self.model.caches.limit_bytes

    def forget(self, run: str) -> None:
        """Free the caches and the kept logits of `run`."""
        self.model.caches.forget(run)
        self.model.kept.forget(run)

    def score(
        self,
        request: Request,
        text: str | None,
        *,
        top: int,
        control: Control,
        progress: OnProgress | None = None,
    ) -> Scoring:
        """How probable `text` is after the request's prompt; without one, the prompt's own tokens.

        Raises `BackendError` before anything is computed, `CannotScore` where it breaks off or is stopped.
        """
        try:
            return score(self.model, request, text, top=top, control=control, progress=progress)
        except RequestError as error:
            raise BackendError(str(error)) from None

    def divergence(self, request: Request, full: "LocalBackend") -> Divergence:
        """How far this model's distributions over the request's prompt are from those of `full`; raises `Refused`."""
        try:
            return divergence(full.model, self.model, request)
        except RequestError as error:
            raise BackendError(str(error)) from None

    def step_waterfall(self, run: Run, lane: int, step: int, control: Control) -> StepWaterfall:
        """What each stage made of the candidates of one step of `run`; raises `Refused`."""
        return step_waterfall(self.model, run, lane, step, control=control)

    def prompt_read(self, run: Run, control: Control) -> PromptRead:
        """What the model expected at each place of the prompt of `run`; raises `Refused`."""
        return prompt_read(self.model, run, control=control)

    def what_if(
        self, run: Run, lane: int, step: int, decoding: Decoding, owner: str, control: Control
    ) -> StepWhatIf:
        """One step of `run` under other settings and its own draw; raises `Refused`."""
        return what_if(self.model, run, lane, step, decoding, owner=owner, control=control)

    def what_if_run(self, run: Run, lane: int, decoding: Decoding, owner: str, control: Control) -> RunWhatIf:
        """The steps of a lane that other settings would have decided otherwise; raises `Refused`."""
        return what_if_run(self.model, run, lane, decoding, owner=owner, control=control)

    def text_odds(self, run: Run, lane: int, step: int, text: str, control: Control) -> TextOdds:
        """How probable `text` is in the place of a step; raises `Refused`."""
        return text_odds(self.model, run, lane, step, text, control=control)

    def race(self, request: Request, control: Control) -> Iterator[Item]:
        """The run with and without its cache. Raises `BackendError` or `InvalidSetting` before the first item."""
        try:
            return race(self.model, request, control=control)
        except RequestError as error:
            raise BackendError(str(error)) from None

    def experiment(self, name: str, control: Control, **options: Any) -> Iterator[Progressed | Experiment]:
        """The engine's experiment `name` on this model; see `playground.engine.experiments`.

        Raises `BackendError` for a name that is not known; `CannotMeasure` where it breaks off.
        """
        if name not in EXPERIMENTS:
            raise BackendError(
                f"There is no experiment {name[:60]!r}; choose one of {', '.join(EXPERIMENTS)}."
            )
        return EXPERIMENTS[name](self.model, control=control, **options)

    def cost_shape(self) -> Shape | None:
        """What the costs of the model hang on; None where the arithmetic does not cover it."""
        return cost_shape(self.model)

    def cache_spec(self) -> CacheSpec | None:
        """What the model keeps of a text, by its config."""
        return self.model.spec

    def rates(self, *, measure: bool = True) -> Device | None:
        """The measured rates of the device; a second or two where they are not known yet.

        None for a model whose weights lie in several places: which of them a step waits for is not known.
        """
        if self.model.facts.weights_places:
            return None
        return probe(self.model) if measure else known(self.model)

    def free_bytes(self) -> int:
        """Memory that a run could take now."""
        return free_bytes(self.model.device)
