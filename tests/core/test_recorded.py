"""The traces that ship: real runs, complete, small, with nothing of the machine that made them."""

import math
import re
from pathlib import Path
from statistics import median

import pytest

from playground.core.compare import lanes_first_divergence
from playground.core.draws import uniform
from playground.core.events import Stepped
from playground.core.metrics import timing
from playground.core.race import Race
from playground.core.run import Lane, Run
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


@pytest.mark.parametrize("name", [path.name for path in FOLDER.glob("*.jsonl")])
def test_the_file_is_small_and_names_no_machine(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    assert len(text.encode()) < 300_000
    assert not re.search(r"/(root|home|work|tmp|Users|mnt)/|[A-Za-z]:\\\\|\.cache\b|://", text)


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


# --- what each of the others teaches


def only_lane(name: str) -> Lane:
    (lane,) = recorded(name).lanes
    return lane


def probability(step: Stepped) -> float:
    return math.exp(step.raw_logprob)


def test_emoji_come_in_pieces() -> None:
    steps = only_lane("emoji.jsonl").steps
    pieces = [step for step in steps if "\ufffd" in step.token.text]
    assert len(pieces) >= 6
    assert any(not step.text for step in pieces), "a piece alone shows nothing"
    assert any(ord(character) > 0xFFFF for step in pieces for character in step.text)


def test_a_token_of_three_per_cent_was_drawn_and_is_what_the_page_opens_on() -> None:
    lane = only_lane("rare.jsonl")
    few = [step for step in lane.steps if step.raw_rank > 1 and step.kept_count < 12]
    rare = max(few, key=lambda step: -step.raw_logprob)
    assert round(100 * probability(rare)) == 3
    assert round(100 * rare.processed_probability) == 3
    assert rare.draw is not None
    assert rare.step < 20
    assert lane.finish_reason == "stop_token"


def test_the_loop_repeats_itself_and_grows_more_certain() -> None:
    lane = only_lane("loop.jsonl")
    ids = lane.token_ids
    period = next(n for n in range(2, len(ids) // 3) if ids[-n:] == ids[-2 * n : -n] == ids[-3 * n : -2 * n])
    last = [probability(step) for step in lane.steps[-period:]]
    first = next(n for n in range(len(ids)) if ids[n : n + period] == ids[len(ids) - period :])
    once = [probability(step) for step in lane.steps[first : first + period]]
    assert lane.decoding.greedy
    assert min(last) > 0.5
    assert math.prod(last) > math.prod(once)


def test_the_stop_string_spans_tokens_and_is_not_in_the_answer() -> None:
    """Case 19, in a real run."""
    lane = only_lane("stop.jsonl")
    assert lane.finished is not None
    assert lane.finish_reason == "stop_string"
    assert lane.finished.withheld_steps >= 2
    assert lane.finished.stop_string not in lane.text
    assert "".join(lane.step_texts()).startswith(lane.text + str(lane.finished.stop_string))
    assert all(lane.finished.stop_string not in step.text for step in lane.steps)


def test_the_race_is_of_the_same_tokens_and_only_one_side_slows_down() -> None:
    (race,) = load_trace(FOLDER / "race.jsonl").records
    assert isinstance(race, Race)
    assert race.raced is not None
    assert race.raced.tokens_equal
    assert all(tick.equal for tick in race.ticks)
    assert len(race.ticks) == len(race.uncached.lanes[0].steps) > 30
    for run, slows in ((race.cached, False), (race.uncached, True)):
        seconds = timing(run, run.lanes[0]).step_seconds
        third = len(seconds) // 3
        assert (median(seconds[-third:]) > 1.2 * median(seconds[:third])) is slows
