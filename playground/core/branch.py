"""The request that goes on from any step of a recorded run: continue, rewind, or force another token.

Knows records only; whether a cache is reused for it is the engine's matter, and changes no token.
"""

from dataclasses import replace

from playground.core.decoding import require_whole
from playground.core.refusal import Refused
from playground.core.request import Parent, Request
from playground.core.run import Run


class NoSuchStep(Refused, IndexError):
    """A step or lane that the run does not have."""

    wrong_use = True


def continued(run: Run, step: int | None = None, lane: int = 0, forced: int | None = None) -> Request:
    """Go on with one lane of `run` as it stood before it chose its token number `step` (0-based).

    None goes on from its end. The id `forced` is put in the place of the token chosen there, as a part of the
    prompt; ids in `Decoding.forced` are recorded as steps of the new run instead. Settings and seed are the
    lane's; its draws go on as if nothing had happened. Raises `NoSuchStep`, and `InvalidSetting` for an id that
    is not in the model's vocabulary.
    """
    if run.started is None or type(lane) is not int or not 0 <= lane < len(run.lanes):
        raise NoSuchStep(f"The run has no lane {repr(lane)[:60]}; nothing was changed.")
    chosen = run.lanes[lane].token_ids
    kept = len(chosen) if step is None else step
    if type(kept) is not int or not 0 <= kept <= len(chosen):
        raise NoSuchStep(f"The run can be continued from step 0 to {len(chosen):,}, not {repr(kept)[:60]}.")
    if forced is not None:
        require_whole("forced", forced, 0, run.started.model.vocabulary - 1)
    tail = chosen[:kept] if forced is None else [*chosen[:kept], forced]
    before = run.started.request.parent.step if run.started.request.parent else 0
    return replace(
        run.started.request,
        prompt_ids=(*run.prompt_ids, *tail),
        lanes=(replace(run.lanes[lane].decoding, forced=(), bias=(), banned=(), once=False),),
        parent=Parent(run.id, before + len(tail), lane),
        run="",
    )
