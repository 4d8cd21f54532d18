"""What every source of tokens looks like to the page, the command line and the tests.

Knows no particular backend.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

from playground.core.control import Control
from playground.core.cost import Device, Shape
from playground.core.decoding import Decoding
from playground.core.events import Event, Note, PromptRead
from playground.core.experiment import Experiment, Progressed
from playground.core.kv import CacheSpec
from playground.core.race import Item
from playground.core.refusal import Refused
from playground.core.request import ModelFacts, Request
from playground.core.run import Run
from playground.core.scoring import Scoring
from playground.core.tokens import Token
from playground.core.waterfall import StepWaterfall
from playground.core.what_if import RunWhatIf, StepWhatIf, TextOdds


class BackendError(Refused):
    """A request that cannot be run; the message is one sentence: what is wrong, what to do."""

    wrong_use = True


class Backend(Protocol):
    """A model somewhere: here (`local`), recorded (`replay`), or behind a server."""

    def facts(self) -> ModelFacts:
        """The model as it is known without running it."""
        ...

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        """The prompt's tokens, rendered, and for each whether it is the user's own text."""
        ...

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        """Run `request`: a generator of events that asks `control` before each forward.

        `request.parent` names a run whose cache may be reused where it is still kept.
        """
        ...

    def forget(self, run: str) -> None:
        """Let go of what is kept to continue `run`; it has ended, and nobody will ask for it again."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """A backend that can also be asked how probable a given text is."""

    def score(self, request: Request, text: str | None, *, top: int, control: Control) -> Scoring:
        """The tokens of `text` after the request's prompt; without one, the prompt's own."""
        ...


@runtime_checkable
class Continuer(Protocol):
    """A backend that keeps the caches of ended runs, and can put a given text behind any of their tokens."""

    def continuation(self, before: Sequence[Token], text: str) -> tuple[tuple[Token, ...], tuple[Note, ...]]:
        """The tokens of `text` as they are put behind `before`; the words before are not cut anew."""
        ...

    def kept(self) -> tuple[int, int]:
        """Bytes of the caches that are kept, and the most that they may take."""
        ...


@runtime_checkable
class Inspector(Protocol):
    """A backend that can also be asked about the steps of a run that has ended: a model in this process."""

    def step_waterfall(self, run: Run, lane: int, step: int, control: Control) -> StepWaterfall:
        """What each stage made of the candidates of one step."""
        ...

    def prompt_read(self, run: Run, control: Control) -> PromptRead:
        """What the model expected at each place of the run's prompt."""
        ...


@runtime_checkable
class Rejudge(Protocol):
    """A backend that can also judge the steps of an ended run again: under other settings, or for a given text."""

    def what_if(
        self, run: Run, lane: int, step: int, decoding: Decoding, owner: str, control: Control
    ) -> StepWhatIf:
        """One step under other settings and its own draw; what is kept for it is `owner`'s."""
        ...

    def what_if_run(self, run: Run, lane: int, decoding: Decoding, owner: str, control: Control) -> RunWhatIf:
        """The steps of a lane that other settings would have decided otherwise."""
        ...

    def text_odds(self, run: Run, lane: int, step: int, text: str, control: Control) -> TextOdds:
        """How probable `text` is in the place of a step."""
        ...


@runtime_checkable
class Racer(Protocol):
    """A backend that can also run a request with and without the KV cache, step by step in turn."""

    def race(self, request: Request, control: Control) -> Iterator[Item]:
        """Both runs' events with a tick after each pair of steps, and the result at the end."""
        ...


@runtime_checkable
class Measurer(Protocol):
    """A backend whose forwards can be timed one by one, and their cost computed: a model in this process."""

    def experiment(self, name: str, control: Control, **options: Any) -> Iterator[Progressed | Experiment]:
        """One of the engine's experiments by its name: progress, then the value; none where it was stopped.

        Raises `BackendError` for a name that is not known, `Refused` where it cannot be measured.
        """
        ...

    def cost_shape(self) -> Shape | None:
        """What the costs of this model hang on; None where they cannot be computed."""
        ...

    def cache_spec(self) -> CacheSpec | None:
        """What this model keeps of a text, by its config; None where the arithmetic does not cover it."""
        ...

    def rates(self, *, measure: bool = True) -> Device | None:
        """How fast the device is, measured once a process; None where not `measure` and not yet known."""
        ...

    def free_bytes(self) -> int:
        """Memory of the device that a run could take now."""
        ...
