"""What a finished run's steps can still be asked: the waterfall of one, and what the model expected of its prompt.

Both are computed from the run's token ids, which are its durable state. Knows no page, and no run beyond its fold.
"""

import math

from playground.core.control import Control
from playground.core.events import PromptRead, Read
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.run import Run
from playground.core.scoring import Scored
from playground.core.waterfall import StepWaterfall
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.reread import logits_after
from playground.engine.score import score
from playground.engine.waterfall import waterfall

EXPECTED = 5
"""Candidates that are kept of what the model expected at each place of a prompt."""


class CannotInspect(Refused):
    """A step or a run that cannot be asked about; nothing was changed."""

    wrong_use = True


def step_waterfall(
    model: LoadedModel, run: Run, lane: int, step: int, *, control: Control | None = None
) -> StepWaterfall:
    """What each stage made of the candidates at `step` of `lane`, on logits that are computed again.

    Raises `CannotInspect` for another model's run or a step that it does not have, and `CannotReread`.
    """
    require_same(model, run)
    if not 0 <= lane < len(run.lanes) or not 0 <= step < len(run.lanes[lane].steps):
        raise CannotInspect("The run has no such step, so nothing was computed.")
    at = run.lanes[lane]
    ids = [*run.prompt_ids, *at.token_ids[:step]]
    found = logits_after(model, ids, run=run.id, control=control)
    shown = waterfall(found.logits, ids, at.decoding_at(step), prompt_tokens=own_prompt_tokens(run))
    tokens = {row.id: model.vocabulary.token(row.id) for row in shown.rows}
    return StepWaterfall(shown, tokens, found.computed, found.reused)


def prompt_read(model: LoadedModel, run: Run, *, control: Control | None = None) -> PromptRead:
    """What the model expected at each place of the run's prompt, by one prefill.

    Raises `CannotInspect` for another model's run or a prompt of one token, and `CannotScore`.
    """
    require_same(model, run)
    request = Request(prompt_ids=tuple(run.prompt_ids), chat=False)
    try:
        found = score(model, request, top=EXPECTED, control=control)
    except RequestError as error:
        raise CannotInspect(str(error)) from None
    return PromptRead(run.id, tuple(map(_read, found.tokens)), found.seconds)


def own_prompt_tokens(run: Run) -> int:
    """Tokens of the first ancestor's prompt: what follows them is output, in a branch too."""
    parent = run.started.request.parent if run.started is not None else None
    return len(run.prompt_ids) - (parent.step if parent is not None else 0)


def _read(scored: Scored) -> Read:
    possible = scored.logprob is not None and math.isfinite(scored.logprob)
    return Read(scored.rank, scored.logprob if possible else None, scored.entropy_bits, scored.expected)


def require_same(model: LoadedModel, run: Run) -> None:
    """Raise `CannotInspect` unless `run` was made with this model."""
    started = run.started
    if started is None:
        raise CannotInspect("The run has not begun, so there is nothing to compute.")
    theirs = started.model
    if (theirs.name, theirs.revision) != (model.facts.name, model.facts.revision):
        raise CannotInspect(
            f"The run was made with {theirs.name[:80]}, and {model.facts.name[:80]} is loaded, "
            "so this was not computed; load that model to ask it."
        )
