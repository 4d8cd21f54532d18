"""What-if on kept logits is what the pipeline chooses on fresh ones; a text's odds are those of a scoring."""

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.request import Request
from playground.core.run import Run, fold
from playground.engine.decode import stream
from playground.engine.inspection import CannotInspect
from playground.engine.kept import KeptLogits, judge, judge_kept, keep
from playground.engine.score import score
from playground.engine.what_if import text_odds, what_if, what_if_run

SETTINGS = [
    GREEDY,
    replace(GREEDY, repetition_penalty=1.3),
    Decoding(),
    Decoding(temperature=1.6, top_p=1.0),
    Decoding(temperature=1.4, top_k=30, top_p=0.95),
    Decoding(temperature=0.4, top_p=1.0, min_p=0.05),
    Decoding(temperature=0.9, top_p=0.95, typical_p=0.6),
    Decoding(temperature=1.0, top_p=1.0, typical_p=0.5, top_k=40),
    Decoding(repetition_penalty=1.4, penalty_scope="output"),
    Decoding(repetition_penalty=0.8),
    Decoding(bias=((17, 4.0), (40, -2.0)), banned=(5, 18)),
    Decoding(order=("repetition_penalty", "top_k", "typical_p", "top_p", "min_p", "temperature"), top_k=20),
]


@pytest.fixture
def ran(model: Any) -> Run:
    request = Request(
        "hello world", tuple(replace(d, seed=3, max_new_tokens=12) for d in SETTINGS), chat=False
    )
    return fold(stream(model, replace(request, run="what-if")))


@pytest.mark.parametrize("lane", range(len(SETTINGS)))
def test_the_runs_own_settings_give_its_own_tokens_and_probabilities(model: Any, ran: Run, lane: int) -> None:
    own = ran.lanes[lane].decoding
    assert what_if_run(model, ran, lane, own, owner="me").others == ()
    for recorded in ran.lanes[lane].steps:
        found = what_if(model, ran, lane, recorded.step, own, owner="me")
        assert found.source.kept  # the vocabulary is smaller than what is kept
        assert found.token == recorded.token and found.draw == recorded.draw
        assert found.processed_probability == pytest.approx(recorded.processed_probability, rel=2e-4)
        assert found.kept_count == recorded.kept_count
        kept = {c.token.id: c.processed_probability for c in found.candidates}
        assert kept == pytest.approx(
            {c.token.id: c.processed_probability for c in recorded.candidates}, abs=1e-5
        )


def test_a_run_under_other_settings_names_the_steps_that_differ(model: Any, ran: Run) -> None:
    found = what_if_run(model, ran, 2, GREEDY, owner="another")
    best = {s.step for s in ran.lanes[2].steps if s.raw_rank > 1}
    assert {o.step for o in found.others} == best and all(o.sure for o in found.others)
    assert found.source.computed > 0 and not found.source.kept
    again = what_if_run(model, ran, 2, GREEDY, owner="another")
    assert again.source.kept and again.others == found.others
    drawn = what_if(model, ran, 0, 3, Decoding(temperature=1.2, top_p=1.0), owner="me")
    assert (
        drawn.draw is not None and drawn.token is not None
    )  # greedy drew nothing: its seed gives the number


def test_kept_rows_answer_as_the_full_logits_do_or_not_at_all() -> None:
    torch.manual_seed(1)
    answered = 0
    for spread, d, draw in itertools.product((1.0, 3.0, 6.0), SETTINGS, (0.02, 0.5, 0.97)):
        raw = torch.randn(6000) * spread
        looked = [*raw.topk(3).indices.tolist(), 17, 18]
        held = None if d.greedy else draw
        full, kept = judge(raw, looked, d, held, 20), judge_kept(keep(raw), looked, d, held, 20)
        if kept is None:
            continue
        answered += 1
        choice, mass = kept
        assert (choice.id, choice.kept_count, choice.raw_rank) == (full.id, full.kept_count, full.raw_rank)
        assert choice.candidates.ids == full.candidates.ids
        assert choice.candidates.removed_by == full.candidates.removed_by
        assert choice.candidates.processed_probabilities == full.candidates.processed_probabilities
        assert choice.candidates.raw_logprobs == pytest.approx(full.candidates.raw_logprobs, abs=1e-5)
        assert mass is None or mass == pytest.approx(full.kept_mass, abs=0.006)
    assert answered > 45  # of 108; the others reach beyond the row
    flat = keep(torch.zeros(6000))
    assert judge_kept(flat, [], Decoding(), 0.5, 20) is None


def test_kept_logits_are_bounded_and_the_oldest_go() -> None:
    row = keep(torch.randn(5000))
    store = KeptLogits(owner_limit_bytes=3 * row.held_bytes, process_limit_bytes=4 * row.held_bytes)
    for step in range(5):
        store.put("a", ("run", 0, step), row)
    assert store.get("a", ("run", 0, 1)) is None and store.get("a", ("run", 0, 2)) is not None
    assert store.get("b", ("run", 0, 2)) is None
    store.put("b", ("other", 0, 0), row)
    store.put("b", ("other", 0, 1), row)
    assert store.held_bytes() == 4 * row.held_bytes and store.held_bytes("a") == 2 * row.held_bytes
    store.forget("run")
    assert store.held_bytes("a") == 0 and store.held_bytes("b") == 2 * row.held_bytes


def test_the_odds_of_a_text_are_those_of_a_scoring_and_of_the_record(model: Any, ran: Run) -> None:
    steps = ran.lanes[3].steps
    ids = (*ran.prompt_ids, *ran.lanes[3].token_ids[:4])
    found = text_odds(model, ran, 3, 4, " gravity of cat")
    reference = score(model, Request(prompt_ids=ids, chat=False), " gravity of cat")
    assert [one.token for one in found.tokens] == [one.token for one in reference.tokens]
    assert [one.rank for one in found.tokens] == [one.rank for one in reference.tokens]
    assert found.logprob == pytest.approx(reference.logprob, abs=1e-4)
    assert found.processed_probability == math.prod(one.processed_probability for one in found.tokens)
    recorded = steps[4]
    if recorded.token.text.strip():
        same = text_odds(model, ran, 3, 4, recorded.token.text).tokens[0]
        if same.token == recorded.token:
            assert same.processed_probability == pytest.approx(recorded.processed_probability, rel=1e-3)


def test_what_cannot_be_asked_is_one_sentence(model: Any, ran: Run) -> None:
    for step in (-1, 12, 10**9):
        with pytest.raises(CannotInspect, match="no such step"):
            what_if(model, ran, 0, step, GREEDY)
    with pytest.raises(InvalidSetting, match="temperature must be a number"):
        what_if(model, ran, 0, 0, Decoding(temperature=math.nan))
    for text, words in (("", "empty"), ("x" * 201, "200 characters"), ("\ud800", "text")):
        with pytest.raises(CannotInspect, match=words):
            text_odds(model, ran, 0, 0, text)
    strange = replace(ran.started, model=replace(ran.started.model, name="other")) if ran.started else None
    with pytest.raises(CannotInspect, match="was made with other"):
        what_if(model, replace(ran, started=strange), 0, 0, GREEDY)


@pytest.mark.model
def test_on_the_default_model_the_own_settings_are_reproduced(default_model: Any) -> None:
    lanes = (GREEDY, Decoding(), Decoding(temperature=1.2, top_k=50, repetition_penalty=1.2))
    request = Request(
        "What is gravity?", tuple(replace(d, seed=3, max_new_tokens=10) for d in lanes), run="what-if-2"
    )
    run = fold(stream(default_model, request))
    for lane in run.lanes:
        assert what_if_run(default_model, run, lane.index, lane.decoding, owner="me").others == ()
        again = what_if_run(default_model, run, lane.index, lane.decoding, owner="me")
        assert again.source.kept and again.others == ()  # the top 1,024 of 49,152 are enough for these
        for recorded in lane.steps:
            found = what_if(default_model, run, lane.index, recorded.step, lane.decoding, owner="me")
            assert (found.source.kept, found.token, found.kept_count) == (
                True,
                recorded.token,
                recorded.kept_count,
            )
            assert found.processed_probability == pytest.approx(recorded.processed_probability, rel=1e-3)
    berlin = text_odds(default_model, run, 0, 0, " Berlin")
    assert berlin.tokens[0].rank > 1 and berlin.tokens[0].token.text.startswith(" ")
