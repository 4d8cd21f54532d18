"""Questions to the steps of a run that has ended: other settings at one or all of them, and any text there.

The logits are computed again from the run's token ids, or those kept of an earlier question; settings act on
them by the pipeline that draws. Knows no page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from playground.core.control import Control
from playground.core.decoding import Decoding, validated
from playground.core.events import Note
from playground.core.run import Run
from playground.core.tokens import Candidate, Token
from playground.core.what_if import OtherChoice, RunWhatIf, Source, StepWhatIf, TextOdds, TokenOdds, held_draw
from playground.engine.choice import Choice
from playground.engine.clock import Clock
from playground.engine.continuation import encode_continuation
from playground.engine.draw import survive
from playground.engine.errors import RequestError
from playground.engine.inspection import CannotInspect, own_prompt_tokens, require_same
from playground.engine.kept import judge, judge_kept, keep
from playground.engine.model import LoadedModel
from playground.engine.pipeline import build, walk
from playground.engine.records import precision
from playground.engine.rescore import rescore

TOP_N = 20
TEXT_LIMIT_CHARACTERS = 200
_A_TURN = 16
"""Steps that are judged on kept logits in one turn."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A lane of a run under other settings, for one who asks."""

    model: LoadedModel
    run: Run
    lane: int
    decoding: Decoding
    owner: str

    @property
    def ids(self) -> list[int]:
        return [*self.run.prompt_ids, *self.run.lanes[self.lane].token_ids]

    def first_place(self) -> int:
        """Where the logits of step 0 stand."""
        return len(self.run.prompt_ids) - 1

    def looked(self, step: int, decoding: Decoding) -> Sequence[int]:
        """The ids that a penalty sees before `step`."""
        if decoding.repetition_penalty == 1:
            return ()
        begin = own_prompt_tokens(self.run) if decoding.penalty_scope == "output" else 0
        return self.ids[begin : len(self.run.prompt_ids) + step]

    def draw(self, step: int, decoding: Decoding) -> float | None:
        return held_draw(self.run, self.lane, step, decoding.greedy)

    def full(self, raw: torch.Tensor, step: int, decoding: Decoding, top_n: int = TOP_N) -> Choice:
        settings, draw = decoding.at(step), self._some_draw(step, decoding)
        return judge(raw, self.looked(step, decoding), settings, draw, top_n)

    def from_kept(
        self, step: int, decoding: Decoding, top_n: int = TOP_N
    ) -> tuple[Choice, float | None] | None:
        row = self.model.kept.get(self.owner, (self.run.id, self.lane, step))
        if row is None:
            return None
        draw = self._some_draw(step, decoding)
        return judge_kept(row, self.looked(step, decoding), decoding.at(step), draw, top_n)

    def _some_draw(self, step: int, decoding: Decoding) -> float | None:
        """Without a draw to hold the distribution is the same for any; what it takes is then not told."""
        draw = self.draw(step, decoding)
        return 0.0 if draw is None and not decoding.greedy else draw

    def remember(self, raw: torch.Tensor, step: int) -> None:
        self.model.kept.put(self.owner, (self.run.id, self.lane, step), keep(raw))

    def source(self, positions: tuple[int, int] | None, seconds: float = 0.0) -> Source:
        kept = self.model.kept
        computed, reused = positions or (0, 0)
        held = kept.held_bytes(self.owner)
        return Source(positions is None, computed, reused, seconds, held, kept.owner_limit_bytes)


def what_if(
    model: LoadedModel, run: Run, lane: int, step: int, decoding: Decoding, *,
    owner: str = "", control: Control | None = None,
) -> StepWhatIf:  # fmt: skip
    """What `decoding` makes of one step, under the step's own draw.

    Raises `InvalidSetting`, `CannotInspect` for another model's run or a step that it does not have, and
    `CannotReread`.
    """
    asked = _asked(model, run, lane, step, decoding, owner)
    found = model.turns.take(lambda: asked.from_kept(step, decoding))
    if found is not None:
        return _step(asked, step, found[0], found[1], asked.source(None))
    choices: list[Choice] = []

    def look(_: int, raw: torch.Tensor) -> None:
        asked.remember(raw, step)
        choices.append(asked.full(raw, step, decoding))

    place, clock = asked.first_place() + step, Clock(model.device)
    positions = rescore(model, asked.ids[: place + 1], place, look, run=run.id, control=control)
    return _step(asked, step, choices[0], choices[0].kept_mass, asked.source(positions, clock.seconds()))


def what_if_run(
    model: LoadedModel, run: Run, lane: int, decoding: Decoding, *,
    owner: str = "", control: Control | None = None,
) -> RunWhatIf:  # fmt: skip
    """At which steps `decoding` takes another token, each under its own draw and on the recorded context.

    Raises as `what_if`.
    """
    asked = _asked(model, run, lane, 0, decoding, owner)
    steps = len(run.lanes[lane].steps)
    others = _others_kept(asked, steps)
    if others is not None:
        return RunWhatIf(steps, tuple(others), asked.source(None))
    found: list[OtherChoice] = []

    def look(place: int, raw: torch.Tensor) -> None:
        step = place - asked.first_place()
        asked.remember(raw, step)
        found.extend(_other(asked, step, asked.full(raw, step, decoding, 1), raw))

    clock = Clock(model.device)
    positions = rescore(model, asked.ids[:-1], asked.first_place(), look, run=run.id, control=control)
    return RunWhatIf(steps, tuple(found), asked.source(positions, clock.seconds()))


def text_odds(
    model: LoadedModel, run: Run, lane: int, step: int, text: str, *, control: Control | None = None
) -> TextOdds:
    """Rank and probability of `text` in the place of `step`, token by token, raw and after the lane's settings.

    The ids before it are taken as they are, never encoded again. Raises as `what_if`, and `CannotInspect`
    for a text that is empty, too long or not readable.
    """
    asked = _asked(model, run, lane, step, Decoding(), "")
    own = run.lanes[lane]
    before = asked.ids[: asked.first_place() + step + 1]
    tokens, notes = _cut(model, before, text)
    ids, found = [*before, *(token.id for token in tokens)], list[TokenOdds]()

    def look(place: int, raw: torch.Tensor) -> None:
        i = place - len(before) + 1
        decoding = own.decoding_at(step + i)
        looked = [*asked.looked(step, decoding), *ids[len(before) : place + 1]]
        found.append(_odds(raw, tokens[i], looked, decoding))

    clock = Clock(model.device)
    positions = rescore(model, ids[:-1], len(before) - 1, look, run=run.id, control=control)
    return TextOdds(tuple(found), asked.source(positions, clock.seconds()), notes)


def _asked(model: LoadedModel, run: Run, lane: int, step: int, decoding: Decoding, owner: str) -> _Asked:
    require_same(model, run)
    if not 0 <= lane < len(run.lanes) or not 0 <= step < len(run.lanes[lane].steps):
        raise CannotInspect("The run has no such step, so nothing was computed.")
    return _Asked(model, run, lane, validated(decoding), owner)


def _step(asked: _Asked, step: int, choice: Choice, mass: float | None, source: Source) -> StepWhatIf:
    found, vocabulary = choice.candidates, asked.model.vocabulary
    draw = asked.draw(step, asked.decoding)
    certain = asked.decoding.greedy or draw is not None
    rows = zip(found.ids, found.raw_logprobs, found.processed_probabilities, found.removed_by, strict=True)
    return StepWhatIf(
        token=vocabulary.token(choice.id) if certain else None,
        draw=draw,
        processed_probability=choice.processed_probability if certain else None,
        kept_count=choice.kept_count,
        kept_mass=mass,
        entropy_bits=choice.processed_entropy_bits,
        candidates=tuple(Candidate(vocabulary.token(id), raw, share, by) for id, raw, share, by in rows),
        source=source,
    )


def _others_kept(asked: _Asked, steps: int) -> list[OtherChoice] | None:
    """From kept logits alone; None as soon as one step needs more."""
    found: list[OtherChoice] = []
    for begin in range(0, steps, _A_TURN):
        block = range(begin, min(begin + _A_TURN, steps))
        some = asked.model.turns.take(partial(_block_kept, asked, block))
        if some is None:
            return None
        found += some
    return found


def _block_kept(asked: _Asked, block: range) -> list[OtherChoice] | None:
    found: list[OtherChoice] = []
    for step in block:
        judged = asked.from_kept(step, asked.decoding, 1)
        if judged is None:
            return None
        found += _other(asked, step, judged[0], None)
    return found


def _other(asked: _Asked, step: int, choice: Choice, raw: torch.Tensor | None) -> list[OtherChoice]:
    """The step if it would have gone otherwise; its own settings are then asked too, whether they agree."""
    at = asked.run.lanes[asked.lane]
    recorded = at.steps[step].token.id
    if at.steps[step].origin == "forced":
        return []  # whatever the settings
    if choice.id == recorded or (not asked.decoding.greedy and asked.draw(step, asked.decoding) is None):
        return []
    if raw is not None:
        own: int | None = asked.full(raw, step, at.decoding_at(step), 1).id
    else:
        kept = asked.from_kept(step, at.decoding_at(step), 1)
        own = kept[0].id if kept is not None else recorded
    token = asked.model.vocabulary.token(choice.id)
    return [OtherChoice(step, token, choice.processed_probability, own == recorded)]


def _cut(model: LoadedModel, before: list[int], text: str) -> tuple[tuple[Token, ...], tuple[Note, ...]]:
    if len(text) > TEXT_LIMIT_CHARACTERS:
        raise CannotInspect(
            f"A text to ask about may have {TEXT_LIMIT_CHARACTERS} characters and this one has {len(text):,}; "
            "shorten it."
        )
    vocabulary = model.vocabulary
    try:
        tokens, notes = encode_continuation(model.tokenizer, vocabulary, vocabulary.tokens(before), text)
    except RequestError as error:
        raise CannotInspect(str(error)) from None
    context = model.facts.context
    if context is not None and len(before) + len(tokens) - 1 > context:
        raise CannotInspect(
            f"With this text the sequence is longer than the {context:,} tokens that this model reads; shorten it."
        )
    return tokens, (*notes, *precision(model))


def _odds(raw: torch.Tensor, token: Token, looked: Sequence[int], decoding: Decoding) -> TokenOdds:
    own = raw[token.id]
    rank = 1 + int((raw > own).sum()) + int((raw[: token.id] == own).sum())
    logprob = min(0.0, float(own.double() - raw.double().logsumexp(0)))
    ids = torch.tensor(list(looked), dtype=torch.long, device=raw.device)
    stages = build(replace(decoding, penalty_scope="all"), 0)
    scores = [raw, *(left for _, left in walk(raw, ids, stages))][-1]
    if decoding.greedy:
        return TokenOdds(token, rank, logprob, float(int(scores.argmax()) == token.id))
    return TokenOdds(token, rank, logprob, float(survive(scores).all_shares()[token.id]))
