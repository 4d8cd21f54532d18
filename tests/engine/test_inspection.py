"""What a finished run can still be asked: a step's waterfall and the prompt, from its ids alone."""

from dataclasses import replace
from typing import Any

import pytest

from playground.core.codec import decode, encode
from playground.core.control import Control
from playground.core.decoding import Decoding
from playground.core.request import Parent, Request
from playground.core.run import Run, fold
from playground.engine.decode import stream
from playground.engine.inspection import CannotInspect, prompt_read, step_waterfall
from playground.engine.reread import CannotReread, logits_after
from playground.engine.score import score

SETTINGS = Decoding(temperature=0.8, top_k=30, top_p=0.9, repetition_penalty=1.2, seed=3, max_new_tokens=10)


def made(model: Any, request: Request | None = None) -> Run:
    asked = request or Request("hello world, the quick", (SETTINGS,), chat=False, run="r")
    return fold(stream(model, asked))


@pytest.fixture(scope="module")
def run(model: Any) -> Run:
    return made(model)


def test_a_waterfall_has_the_counts_and_masses_that_the_step_recorded(model: Any, run: Run) -> None:
    for at, step in enumerate(run.lanes[0].steps):
        found = step_waterfall(model, run, 0, at)
        told = [(stage.name, stage.kept_count) for stage in found.waterfall.stages]
        assert told == [(stage.name, stage.kept_count) for stage in step.stages]
        masses = [stage.kept_mass for stage in found.waterfall.stages]
        assert masses == pytest.approx([stage.kept_mass for stage in step.stages], abs=1e-4)
        rows = {row.id: row for row in found.waterfall.rows}
        chosen = rows.get(step.token.id)
        if chosen is not None:
            assert chosen.probabilities[-1] == pytest.approx(step.processed_probability, abs=1e-4)
        assert all(found.tokens[id] == model.vocabulary.token(id) for id in rows)


def test_what_the_runs_cache_still_holds_is_not_computed_again(model: Any, run: Run) -> None:
    found = step_waterfall(model, run, 0, 6)
    assert (found.computed, found.reused) == (1, len(run.prompt_ids) + 5)
    model.caches.forget("r")
    again = step_waterfall(model, run, 0, 6)
    assert (again.computed, again.reused) == (len(run.prompt_ids) + 6, 0)
    assert again.waterfall.rows[0].raw_logit == pytest.approx(found.waterfall.rows[0].raw_logit, abs=1e-4)


def test_a_penalty_on_the_output_counts_a_branchs_earlier_output(model: Any) -> None:
    lane = replace(SETTINGS, penalty_scope="output", max_new_tokens=4)
    whole = made(model, Request("hello world", (lane,), chat=False, run="a"))
    ids = (*whole.prompt_ids, *whole.lanes[0].token_ids[:2])
    branch = made(model, Request(lanes=(lane,), prompt_ids=ids, chat=False, run="b", parent=Parent("a", 2)))
    one, other = step_waterfall(model, whole, 0, 2), step_waterfall(model, branch, 0, 0)
    assert [row.id for row in one.waterfall.rows] == [row.id for row in other.waterfall.rows]
    assert [row.penalised for row in one.waterfall.rows] == [row.penalised for row in other.waterfall.rows]


def test_the_prompt_is_read_as_score_reads_it(model: Any, run: Run) -> None:
    event = prompt_read(model, run)
    assert decode(encode(event)) == event
    assert len(event.tokens) == len(run.prompt_ids)
    first, *rest = event.tokens
    assert (first.rank, first.logprob, first.expected) == (None, None, ())
    scored = score(model, Request(prompt_ids=tuple(run.prompt_ids), chat=False), top=5).tokens[1:]
    for read, one in zip(rest, scored, strict=True):
        assert (read.rank, read.entropy_bits) == (one.rank, one.entropy_bits)
        assert read.logprob == pytest.approx(one.logprob)
        assert [e.token.id for e in read.expected] == [e.token.id for e in one.expected]


def test_what_cannot_be_asked_is_a_sentence(model: Any, run: Run) -> None:
    started = run.started
    assert started is not None
    other = fold([replace(started, model=replace(started.model, name="another")), *run.events[1:]])
    with pytest.raises(CannotInspect, match="made with another, and tiny is loaded"):
        step_waterfall(model, other, 0, 0)
    for lane, step in ((0, 99), (1, 0), (0, -1)):
        with pytest.raises(CannotInspect, match="no such step"):
            step_waterfall(model, run, lane, step)
    alone = made(model, Request(prompt_ids=(5,), lanes=(SETTINGS,), chat=False, run="c"))
    with pytest.raises(CannotInspect, match="one token"):
        prompt_read(model, alone)
    with pytest.raises(CannotInspect, match="has not begun"):
        prompt_read(model, Run())
    with pytest.raises(CannotReread, match="no tokens"):
        logits_after(model, ())
    control = Control()
    control.stop()
    with pytest.raises(CannotReread, match="stopped"):
        logits_after(model, (1, 2), control=control)
