"""The traces that ship: real runs, complete, small, with nothing of the machine that made them."""

import math
import re
from pathlib import Path

import pytest

from playground.core.compare import lanes_first_divergence
from playground.core.draws import uniform
from playground.core.metrics import timing
from playground.core.run import Run
from playground.core.trace import load_trace

FOLDER = Path(__file__).parents[2] / "assets" / "traces"
NAMES = ("playground.jsonl", "compare.jsonl")


def recorded(name: str) -> Run:
    trace = load_trace(FOLDER / name)
    assert trace.notes == []
    (run,) = trace.runs
    return run


@pytest.fixture(scope="module", params=NAMES)
def run(request) -> Run:
    return recorded(request.param)


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_small_and_names_no_machine(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert len(text.encode()) < 300_000
    assert not re.search(r"/(root|home|work|tmp|Users|mnt)/|[A-Za-z]:\\\\|\.cache|://", text)


def test_it_is_a_finished_run_of_the_default_model_in_fp32(run):
    model = run.started.model
    assert run.done
    assert run.failed is None
    assert (model.name, model.dtype, model.device) == ("SmolLM2-135M-Instruct", "float32", "cpu")
    assert (model.vocabulary, model.context, model.kv_bytes_per_token) == (49_152, 8_192, 46_080)
    assert all(lane.finish_reason == "stop_token" for lane in run.lanes)


def test_cache_bytes_are_those_of_the_positions(run):
    prompt = len(run.prompt_ids)
    assert run.prefilled.kv_used_bytes == prompt * 46_080
    for lane in run.lanes:
        assert [s.kv_tokens for s in lane.steps] == [prompt + n for n in range(len(lane.steps))]
        assert all(s.kv_used_bytes == s.kv_tokens * 46_080 <= s.kv_allocated_bytes for s in lane.steps)


def test_clocks_go_forward_and_rates_are_plausible(run):
    assert not run.prefilled.warm_up
    assert 0 < run.prefilled.end_seconds - run.prefilled.start_seconds < 1
    for lane in run.lanes:
        ends = [run.prefilled.end_seconds, *(step.end_seconds for step in lane.steps)]
        assert ends == sorted(ends)
        assert ends[-1] <= lane.finished.seconds
        assert 2 < timing(run, lane).decode_tokens_per_second < 1000


def test_draws_come_from_the_seeds(run):
    for lane in run.lanes:
        for step in lane.steps:
            expected = None if lane.decoding.greedy else uniform(lane.decoding.seed, step.step)
            assert step.draw == expected
            assert step.origin == ("argmax" if lane.decoding.greedy else "drawn")


def test_bytes_texts_and_candidates_belong_to_the_chosen_tokens(run):
    for lane in run.lanes:
        data = b"".join(bytes.fromhex(s.token.bytes) for s in lane.steps if not s.token.special)
        assert data.decode("utf-8") == lane.text
        for step in lane.steps:
            (chosen,) = [c for c in step.candidates if c.token == step.token]
            assert (chosen.raw_logprob, chosen.processed_probability) == (
                step.raw_logprob, step.processed_probability,
            )  # fmt: skip
            assert chosen.removed_by is None
            assert sum(math.exp(c.raw_logprob) for c in step.candidates) <= 1 + 1e-6
            assert all((c.processed_probability == 0) == (c.removed_by is not None) for c in step.candidates)


def test_where_all_survivors_are_shown_they_sum_to_one(run):
    seen = 0
    for lane in run.lanes:
        for step in lane.steps:
            shown = sum(c.processed_probability for c in step.candidates)
            if step.kept_count <= len(step.candidates):
                assert shown == pytest.approx(1, abs=1e-6)
                seen += 1
            assert shown <= 1 + 1e-6
    assert seen > 20


def test_the_answer_holds_a_surprising_token():
    (lane,) = recorded("playground.jsonl").lanes
    assert max(step.raw_rank for step in lane.steps) > 3
    assert len(lane.steps) <= 64


def test_the_compared_lanes_part_and_show_four_strategies():
    run = recorded("compare.jsonl")
    assert [lane.decoding.temperature for lane in run.lanes] == [0.0, 0.7, 1.0, 1.4]
    assert [lane.decoding.greedy for lane in run.lanes] == [True, False, False, False]
    assert lanes_first_divergence(run.lanes) is not None
    assert len({lane.text for lane in run.lanes}) == 4
