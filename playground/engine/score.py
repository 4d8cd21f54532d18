"""How probable given tokens are: one reading of the text, nothing is chosen.

The text is read once, in chunks that fill a cache, as a prefill is; the logits of a chunk are counted and
let go, so that they never stand in memory for all positions: a vocabulary of 152 k leaves room for
110 positions at a time. Knows no page, and no settings: the distribution is the raw one.
"""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from playground.core.control import Control
from playground.core.events import Note
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.scoring import Scored, Scoring
from playground.core.tokens import Expected, Token
from playground.engine.cache import forward_all, new_cache
from playground.engine.clock import Clock
from playground.engine.continuation import encode_continuation
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.pipeline import highest
from playground.engine.prompts import encode_prompt
from playground.engine.records import precision
from playground.engine.room import PREFILL_CHUNK_TOKENS, Extent, NoRoom, Room

LOGITS_NUMBERS_LIMIT = 2**24
"""Logits that stand in memory at once: 64 MiB in fp32."""

TOP_LIMIT = 20
_BLOCK_ROWS = 8
"""Positions counted together: the temporary tensors of a few rows stay small."""
_BLOCK_COPIES = 6
"""Tensors of a block in fp32 at its busiest: logits, probabilities, their product, what is compared."""

_log = logging.getLogger(__name__)


class CannotScore(Refused):
    """A scoring that broke off or was stopped; nothing is kept of it."""


OnProgress = Callable[[int, int], None]


def score(
    model: LoadedModel,
    prompt: str | Request,
    text: str | None = None,
    *,
    top: int = 5,
    control: Control | None = None,
    progress: OnProgress | None = None,
) -> Scoring:
    """Probability and rank of every token of `text` after `prompt`; without one, of the prompt's own.

    A step of a run is asked about with its ids so far as the request's `prompt_ids`. `top` candidates
    are given at each place. `progress` is told positions read and positions in all. Raises
    `RequestError` before anything is computed, `CannotScore` where it was stopped or the model failed.
    """
    clock, control = Clock(model.device), control or Control()
    if isinstance(top, bool) or not isinstance(top, int) or not 0 <= top <= TOP_LIMIT:
        raise RequestError(f"top must be a whole number from 0 to {TOP_LIMIT}, not {repr(top)[:60]}.")
    asked = _asked(model, Request(prompt) if isinstance(prompt, str) else prompt, text)
    rows = list(_read(model, asked, min(top, model.facts.vocabulary), control, progress))
    return Scoring(
        model.facts,
        tuple(_scored(model, asked, rows)),
        text,
        asked.first_scored if text is not None else len(asked.tokens),
        clock.seconds(),
        asked.notes,
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """The whole sequence; tokens from `first_scored` on are asked about."""

    tokens: tuple[Token, ...]
    first_scored: int
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """What one position says of the next token, on the host."""

    rank: int
    logprob: float
    entropy_bits: float
    top_ids: list[int]
    top_logprobs: list[float]


def _asked(model: LoadedModel, request: Request, text: str | None) -> _Asked:
    prompt = encode_prompt(model.tokenizer, model.vocabulary, request)
    if text is None:
        tokens, first, notes = prompt.tokens, 0, prompt.notes
        if len(tokens) == 1:
            raise RequestError(
                "The prompt is one token, and nothing before it predicts it; give a text to score."
            )
    else:
        added, seam = encode_continuation(model.tokenizer, model.vocabulary, prompt.tokens, text)
        tokens, first, notes = (*prompt.tokens, *added), len(prompt.tokens), (*prompt.notes, *seam)
    context = model.facts.context
    if context is not None and len(tokens) - 1 > context:
        raise RequestError(
            f"Prompt and text have {len(tokens):,} tokens together and this model reads at most {context:,}; "
            "shorten them."
        )
    return _Asked(tokens, first, (*notes, *precision(model)))


def _read(
    model: LoadedModel, asked: _Asked, top: int, control: Control, progress: OnProgress | None
) -> Iterator[_Row]:
    """One row for each scored token that has one before it."""
    ids = [token.id for token in asked.tokens]
    cache = new_cache(model.module)
    first_asked = max(asked.first_scored - 1, 0)
    try:
        for begin, end in _chunks(first_asked, len(ids) - 1, model.facts.vocabulary):
            control.held_seconds()
            if control.stopped:
                raise CannotScore("The scoring was stopped before its end, so nothing is shown of it.")
            targets = ids[max(begin, first_asked) + 1 : end + 1]
            logit_rows = len(targets) + _BLOCK_ROWS * _BLOCK_COPIES
            Room(model).require(Extent(begin, min(begin, 1)), Extent(len(ids) - 1, 1), logit_rows)
            yield from model.turns.take(partial(_forward, model, ids[begin:end], targets, cache, top))
            if progress is not None:
                progress(end, len(ids) - 1)
    except Refused:
        raise
    except Exception as error:  # whatever a model's own code raises
        _log.exception("A scoring broke off.")
        short = isinstance(error, MemoryError | torch.OutOfMemoryError) or "memory" in str(error)
        reason = "there is not enough memory for it" if short else f"the model failed ({error})"
        reason = str(error) if isinstance(error, NoRoom) else reason
        raise CannotScore(f"The text could not be scored: {reason}; nothing was changed.") from error


def _chunks(first_asked: int, end: int, vocabulary: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each forward: as a prefill's, shorter where many logits of it are asked for."""
    asked = max(1, LOGITS_NUMBERS_LIMIT // max(vocabulary, 1))
    begin = 0
    while begin < end:
        stop = min(begin + PREFILL_CHUNK_TOKENS, max(begin, first_asked) + asked, end)
        yield begin, stop
        begin = stop


@torch.inference_mode()
def _forward(model: LoadedModel, ids: list[int], targets: list[int], cache: Any, top: int) -> list[_Row]:
    batch = torch.tensor([ids], device=model.device)
    logits = forward_all(model.module, batch, cache, max(1, len(targets)))[0]
    rows: list[_Row] = []
    for begin in range(0, len(targets), _BLOCK_ROWS):
        block = logits[begin : begin + _BLOCK_ROWS].float()
        rows += _counted(block, targets[begin : begin + _BLOCK_ROWS], top)
    return rows


def _counted(raw: torch.Tensor, targets: list[int], top: int) -> list[_Row]:
    """Rank, log-probability, entropy and top of each target under its row of `raw` (rows, vocabulary)."""
    target = torch.tensor(targets, device=raw.device)[:, None]
    own = raw.gather(1, target)
    logsumexp = raw.logsumexp(1, keepdim=True)
    if not logsumexp.isfinite().all():
        raise CannotScore(
            "The text could not be scored: the model's logits are not numbers; nothing was changed."
        )
    rank = 1 + (raw > own).sum(1) + _ties_before(raw, own, target)
    ids = highest(raw, top)
    parts = [
        rank[:, None], own - logsumexp, _entropy(raw, logsumexp)[:, None] / math.log(2),
        ids, raw.gather(1, ids) - logsumexp,
    ]  # fmt: skip
    host = torch.cat([part.double() for part in parts], 1).tolist()
    return [_row(values, ids.shape[1]) for values in host]


def _ties_before(raw: torch.Tensor, own: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """For each row, the candidates exactly as probable as the target that have a smaller id."""
    same = raw == own
    if int(same.sum()) == len(raw):  # each target is its own only equal
        return torch.zeros_like(target[:, 0])
    return (same & (torch.arange(raw.shape[1], device=raw.device) < target)).sum(1)


def _entropy(raw: torch.Tensor, logsumexp: torch.Tensor) -> torch.Tensor:
    """Of each row, in nats."""
    probabilities = (raw - logsumexp).exp()
    mean = (probabilities * raw).sum(1)
    if mean.isnan().any():  # a candidate at -inf, which adds nothing
        mean = (probabilities * raw.clamp_min(-1e9)).sum(1)
    return logsumexp[:, 0] - mean


def _row(values: list[float], top: int) -> _Row:
    ids, logprobs = values[3 : 3 + top], values[3 + top :]
    possible = [i for i in range(top) if math.isfinite(logprobs[i])]
    return _Row(
        int(values[0]),
        _short(min(0.0, values[1])),
        _short(max(0.0, values[2])),
        [int(ids[i]) for i in possible],
        [_short(min(0.0, logprobs[i])) for i in possible],
    )


def _scored(model: LoadedModel, asked: _Asked, rows: Sequence[_Row]) -> Iterator[Scored]:
    first = asked.first_scored
    if first == 0:
        yield Scored(0, asked.tokens[0])
        first = 1
    for place, row in enumerate(rows, start=first):
        expected = tuple(
            Expected(model.vocabulary.token(id), logprob)
            for id, logprob in zip(row.top_ids, row.top_logprobs, strict=True)
        )
        yield Scored(place, asked.tokens[place], row.rank, row.logprob, row.entropy_bits, expected)


def _short(value: float) -> float:
    return float(f"{value:.9g}")  # as a step's record has it
