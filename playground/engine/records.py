"""From what the loop holds to the events it yields. Knows no forward and no consumer."""

from playground.core.events import Finished, FinishReason, LayerKv, Note, Origin, Started, Stepped
from playground.core.joining import steps_reaching_past
from playground.core.request import Request
from playground.core.tokens import Candidate
from playground.engine import int8
from playground.engine.cache import Measured
from playground.engine.choice import Candidates, Choice
from playground.engine.live import LiveLane
from playground.engine.model import LoadedModel
from playground.engine.prompts import Prompt

SIXTEEN_BIT = ("bfloat16", "float16")
IN_16_BIT = Note(
    "sixteen_bit",
    "This model runs in 16-bit numbers: probabilities are good to about two figures, and the same "
    "prompt may go on differently alone, in several runs at once, or read anew.",
)
IN_8_BIT = Note(
    "eight_bit",
    "The matrices of this model are stored in 8 bits: probabilities are near those of the full model and not the "
    "same, and a prompt may go on differently alone, in several runs at once, or read anew.",
)


def precision(model: LoadedModel) -> tuple[Note, ...]:
    """What to know of the numbers that `model` computes with; nothing in full precision."""
    if model.facts.weights == int8.NAME:
        return (IN_8_BIT,)
    return (IN_16_BIT,) if model.facts.dtype in SIXTEEN_BIT else ()


def started(model: LoadedModel, request: Request, prompt: Prompt) -> Started:
    """The first event of a run."""
    notes = (*prompt.notes, *precision(model))
    return Started(
        request.run,
        request,
        model.facts,
        prompt.tokens,
        prompt.own,
        notes,
        load_seconds=model.load_seconds,
    )


def predicted_bytes(model: LoadedModel, tokens: int) -> int | None:
    """What the arithmetic says one sequence of `tokens` holds; None where the config does not tell."""
    if tokens == 0:  # no cache, or nothing in it yet
        return 0
    return None if model.spec is None else model.spec.used_bytes(tokens)


def stepped(
    model: LoadedModel,
    request: Request,
    lane: LiveLane,
    choice: Choice,
    draw: float | None,
    clock: tuple[float, float],
    kv: Measured,
    rows: int,
    positions: tuple[int, int],
) -> Stepped:
    """The record of one chosen token; also appends it to the lane.

    `clock` is the step's begin and end in seconds, `kv` measures all `rows` of the cache together,
    `positions` are those computed and reused for this step.
    """
    assert request.prompt_ids is not None
    step, origin = lane.steps, _origin(lane, draw)
    text = lane.text.add(choice.id)
    lane.ids.append(choice.id)
    lane.pieces.append(text)
    position = len(request.prompt_ids) + step
    return Stepped(
        run=request.run, lane=lane.index, step=step, position=position,
        token=model.vocabulary.token(choice.id), text=text,
        raw_rank=choice.raw_rank, raw_logprob=choice.raw_logprob,
        processed_probability=choice.processed_probability,
        draw=draw, origin=origin,
        candidates=_candidates(model, choice.candidates),
        logsumexp=choice.logsumexp, raw_entropy_bits=choice.raw_entropy_bits,
        processed_entropy_bits=choice.processed_entropy_bits,
        kept_count=choice.kept_count, kept_mass=choice.kept_mass, stages=choice.stages,
        start_seconds=clock[0], end_seconds=clock[1],
        kv_tokens=kv.tokens, kv_used_bytes=_share(kv.used_bytes, rows),
        kv_allocated_bytes=_share(kv.allocated_bytes, rows),
        positions_computed=positions[0], positions_reused=positions[1],
        kv_predicted_bytes=predicted_bytes(model, kv.tokens),
        kv_state_bytes=_share(kv.state_bytes, rows),
        held_characters=lane.stops.held(lane.text.text, len(text)),
    )  # fmt: skip


def _origin(lane: LiveLane, draw: float | None) -> Origin:
    if lane.forced is not None:
        return "forced"
    return "argmax" if draw is None else "drawn"


def finished(
    run: str, lane: LiveLane, reason: FinishReason, seconds: float, kv_layers: tuple[LayerKv, ...] = ()
) -> Finished:
    """The last event of a lane: its text without a stop string, what that took away, and what its cache held."""
    stop = None
    if lane.pieces:
        stop = lane.stops.found(lane.text.text, len(lane.pieces[-1])) if reason == "stop_string" else None
    tail = lane.text.tail()
    text = lane.text.text
    withheld = 0
    if stop is not None:
        text = text[: max(0, stop[0])]  # it may have begun before the place where this run goes on
        withheld = steps_reaching_past(lane.pieces, stop[0])
    return Finished(
        run, lane.index, reason, text, seconds, tail, stop and stop[1], withheld, kv_layers=kv_layers
    )


def _candidates(model: LoadedModel, found: Candidates) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(model.vocabulary.token(id), raw, processed, removed)
        for id, raw, processed, removed in zip(
            found.ids, found.raw_logprobs, found.processed_probabilities, found.removed_by, strict=True
        )
    )


def _share(bytes_: int | None, rows: int) -> int | None:
    return None if bytes_ is None else bytes_ // rows
