"""Numbers about runs: prefill and decode apart (case 31), divergence, the JSON of the interface."""

import json
import math
from dataclasses import replace

import pytest

from playground.core.compare import first_divergence, lanes_first_divergence
from playground.core.decoding import Decoding
from playground.core.events import Failed
from playground.core.metrics import (
    distinct,
    mean_surprisal_bits,
    measures,
    percentile_95,
    power_of_two,
    surprisal_bits,
    timing,
)
from playground.core.report import comparison, generation
from playground.core.run import Run, fold


def test_the_decode_rate_does_not_contain_the_prefill(run_of):
    """2,000 tokens read in 2 s, then 40 tokens, one every 0.1 s."""
    run = run_of(list(range(40)))
    times = timing(run, run.lanes[0])
    assert times.time_to_first_token_seconds == 2.0
    assert times.prefill_seconds == 2.0
    assert times.prefill_tokens_per_second == 1000
    assert times.decode_tokens_per_second == pytest.approx(39 / 3.9)
    assert len(times.step_seconds) == 39
    assert times.step_seconds == pytest.approx([0.1] * 39)
    assert times.inter_token_median_seconds == pytest.approx(0.1)
    assert times.inter_token_p95_seconds == pytest.approx(0.1)
    assert (times.prefill_tokens_computed, times.prefill_tokens_reused) == (2000, 10)
    assert times.load_seconds == 0.5


def test_one_token_has_no_decode_rate(run_of):
    times = timing(run_of([5]), run_of([5]).lanes[0])
    assert times.decode_tokens_per_second is None
    assert times.inter_token_median_seconds is None
    assert times.inter_token_p95_seconds is None
    assert times.step_seconds == []
    assert times.time_to_first_token_seconds == 2.0


def test_unknown_is_none(run_of):
    run = fold(run_of([5]).events[:1])
    times = timing(run, run.lanes[0])
    assert times.prefill_seconds is None
    assert times.prefill_tokens_per_second is None
    assert times.time_to_first_token_seconds is None
    assert mean_surprisal_bits(run.lanes[0]) is None


def test_percentiles_are_linear_between_ranks():
    assert percentile_95(list(range(101))) == 95
    assert percentile_95([1.0]) is None


def test_surprisal_is_in_bits_and_never_below_zero(run_of, step_of):
    step = step_of(0, 0, 1, 2.0, raw_logprob=math.log(1 / 8))
    assert surprisal_bits(step) == pytest.approx(3)
    assert surprisal_bits(replace(step, raw_logprob=1e-9)) == 0
    assert mean_surprisal_bits(run_of([1, 2]).lanes[0]) == pytest.approx(1 / math.log(2))


def test_distinct_n_grams():
    assert distinct([1, 2, 1, 2], 2) == pytest.approx(2 / 3)
    assert distinct([1], 2) is None


@pytest.mark.parametrize(
    ("a", "b", "step"),
    [([1, 2, 3], [1, 2, 3], None), ([1, 2, 3], [1, 9, 3], 1), ([1], [2], 0), ([1, 2], [1, 2, 3], 2),
     ([], [], None), ([1, 2, 3], [1], 1)],
)  # fmt: skip
def test_first_divergence(a, b, step):
    assert first_divergence(a, b) == step


def test_the_first_of_several_lanes_to_leave(run_of):
    run = run_of([1, 2, 3], [1, 2, 4], [1, 5, 3])
    assert lanes_first_divergence(run.lanes) == 1
    assert lanes_first_divergence(run.lanes, reference=1) == 1
    assert lanes_first_divergence(run_of([1, 2], [1, 2]).lanes) is None


# --- the JSON of the interface: keys that scripts rely on

GENERATE = "text prompt_token_ids token_ids finish_reason seed settings timing kv_cache steps"
TIMING = (
    "load_seconds prefill_seconds prefill_tokens_computed prefill_tokens_reused time_to_first_token_seconds "
    "decode_tokens_per_second step_seconds"
)
KV_CACHE = "tokens used_bytes allocated_bytes predicted_bytes bytes_per_token dtype"
STEP = (
    "lane step position id text bytes raw_rank raw_probability processed_probability draw raw_entropy_bits "
    "processed_entropy_bits kept_count kept_mass withheld seconds kv_tokens positions_computed "
    "positions_reused logsumexp stages parent origin candidates"
)
CANDIDATE = "id text raw_logprob raw_probability processed_probability removed_by special"


def test_generate_has_every_key_of_the_interface(run_of):
    report = generation(run_of([5, 6], decodings=(Decoding(seed=3),)))
    assert set(GENERATE.split()) <= report.keys()
    assert set(TIMING.split()) <= report["timing"].keys()
    assert set(KV_CACHE.split()) <= report["kv_cache"].keys()
    assert set(STEP.split()) <= report["steps"][0].keys()
    assert {"name", "kept_count", "kept_mass"} <= report["steps"][0]["stages"][0].keys()
    assert set(CANDIDATE.split()) <= report["steps"][0]["candidates"][0].keys()


def test_generate_reports_the_run(run_of):
    report = generation(run_of([5, 6], decodings=(Decoding(seed=3, name="mine"),)))
    assert report["text"] == " 5 6"
    assert report["token_ids"] == [5, 6]
    assert report["prompt_token_ids"] == [1, 2, 3, 4]
    assert (report["seed"], report["finish_reason"], report["error"]) == (3, "max_new_tokens", None)
    assert report["kv_cache"]["tokens"] == 4 + 2 - 1
    assert report["kv_cache"]["used_bytes"] == report["kv_cache"]["predicted_bytes"] == 5 * 46080
    step = report["steps"][1]
    assert step["raw_probability"] == pytest.approx(math.exp(-1))
    assert step["seconds"] == pytest.approx(0.1)
    removed = step["candidates"][1]
    assert (removed["processed_probability"], removed["removed_by"], removed["special"]) == (
        0.0,
        "top_p",
        True,
    )


def test_compare_has_every_key_of_the_interface(run_of):
    report = comparison(run_of([5, 6], [5, 7, 8], decodings=(Decoding(name="a"), Decoding(temperature=0))))
    assert {"lanes", "first_divergence", "prefill", "timing"} <= report.keys()
    assert all(set(GENERATE.split()) | {"spec"} <= lane.keys() for lane in report["lanes"])
    assert [lane["spec"] for lane in report["lanes"]] == ["a", "greedy"]
    assert [lane["diverges_at"] for lane in report["lanes"]] == [None, 1]
    assert report["first_divergence"] == 1
    assert len(report["timing"]["step_seconds"]) == 2


def test_reports_are_strict_json(run_of):
    run = run_of([5], [6], finish=False)
    for report in (generation(run), comparison(run)):
        assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_a_run_without_steps_is_reported_too(run_of):
    report = generation(run_of([], finish=False))
    assert (report["text"], report["steps"], report["finish_reason"]) == ("", [], None)
    assert report["kv_cache"]["tokens"] == 4


def test_a_run_that_never_began_reports_its_failure():
    failed = fold([Failed("r", None, "The prompt is empty; type something.", 0.0)])
    for report in (generation(failed), comparison(failed)):
        assert report == {"error": "The prompt is empty; type something."}
    assert generation(Run())["error"].endswith(".")


def test_the_measures_of_a_lane(run_of):
    run = run_of([1, 2, 3, 4, 1, 2, 3, 4])
    found = measures(run, run.lanes[0])
    assert found.tokens == 8 and found.finish_reason == run.lanes[0].finish_reason
    assert found.perplexity == pytest.approx(2 ** mean_surprisal_bits(run.lanes[0]))
    assert found.mean_entropy_bits == run.lanes[0].steps[0].raw_entropy_bits
    assert found.effective_choices == pytest.approx(2 ** run.lanes[0].steps[0].processed_entropy_bits)
    assert (found.distinct_1, found.distinct_2) == (4 / 8, pytest.approx(4 / 7))
    assert found.repeated_share == pytest.approx(1 / 5)
    assert found.seconds == run.lanes[0].steps[-1].end_seconds
    assert comparison(run)["lanes"][0]["measures"]["perplexity"] == found.perplexity


def test_a_lane_without_tokens_has_no_measures(run_of):
    run = fold(run_of([5]).events[:1])
    found = measures(run, run.lanes[0])
    assert found.tokens == 0
    assert {found.perplexity, found.mean_kept_mass, found.repeated_share, found.seconds} == {None}
    assert power_of_two(5000.0) is None
