"""The numbers of the tour: of a run's record, and the arithmetic that no run has to make."""

import math
from pathlib import Path

import pytest

from playground import catalog
from playground.core.cost import Device
from playground.core.lesson import (
    TEMPERATURES,
    cache_bytes,
    decode_ceiling,
    forwards,
    lesson_request,
    prefill_pairs,
    run_facts,
    saved_work,
    temperatures_request,
)
from playground.core.softmax import softmax_table
from playground.core.trace import load_trace

FOLDER = Path(__file__).parents[2] / "assets" / "traces"
LLAMA = catalog.config("llama-3.1-8b")


@pytest.fixture(scope="module")
def run():
    return load_trace(FOLDER / "playground.jsonl").runs[0]


def test_facts_are_those_of_the_events(run):
    steps, prompt = run.lanes[0].steps, len(run.started.prompt)
    facts = run_facts(run)
    assert (facts["prompt_tokens"], facts["new_tokens"]) == (prompt, len(steps))
    assert facts["own_tokens"] == sum(run.started.own) < prompt
    assert facts["prefill_seconds"] == run.prefilled.end_seconds - run.prefilled.start_seconds
    assert facts["first_token_seconds"] == steps[0].end_seconds
    assert facts["total_seconds"] == steps[-1].end_seconds
    assert facts["cache_tokens"] == prompt + len(steps) - 1
    assert facts["cache_bytes"] == facts["cache_tokens"] * facts["bytes_per_token"]
    assert facts["step_read_bytes"] == run.started.model.weights_bytes + facts["cache_bytes"]
    assert facts["prefill_pairs"] == sum(range(1, prompt + 1))
    assert facts["uncached"]["kv_computed"] == sum(range(prompt, prompt + len(steps)))


def test_a_guess_is_one_of_the_best_candidates_at_an_open_step(run):
    guess = run_facts(run)["guess"]
    step = run.lanes[0].steps[guess["step"]]
    raw = {c.token.id: c.raw_logprob for c in step.candidates}
    assert [o["id"] for o in guess["options"]] == sorted(o["id"] for o in guess["options"])
    assert guess["best"] == max(raw, key=lambda id: raw[id])
    for option in guess["options"]:
        assert option["bits"] == pytest.approx(-raw[option["id"]] / math.log(2))
        assert option["probability"] == pytest.approx(math.exp(raw[option["id"]]))
    assert guess["drawn_bits"] == pytest.approx(-step.raw_logprob / math.log(2))


def test_scores_become_per_cent():
    run = load_trace(FOLDER / "learn" / "temperatures.jsonl").runs[0]
    assert tuple(lane.decoding.temperature for lane in run.lanes) == TEMPERATURES
    logits = None
    for lane, temperature in zip(run.lanes, TEMPERATURES, strict=True):
        table = softmax_table(lane.steps[0], temperature)
        assert logits is None or [row.logit for row in table.rows] == pytest.approx(logits)
        logits = [row.logit for row in table.rows]
        if temperature == 0:
            assert [row.probability for row in table.rows] == [1.0, *[0.0] * (len(table.rows) - 1)]
            assert table.weights_total is None
            continue
        for row in table.rows:
            assert row.scaled == pytest.approx(row.logit / temperature)
            assert row.weight == pytest.approx(math.exp(row.scaled - table.rows[0].scaled))
            assert row.weight / table.weights_total == pytest.approx(row.probability, rel=1e-4)


def test_counts_of_the_article():
    (row,) = saved_work([1000])
    assert row["cached"]["kv_computed"] == 1000
    assert row["uncached"]["kv_computed"] == 500_500
    assert row["cached"]["attention_dot_products_computed"] == 500_500
    assert prefill_pairs([50]) == [{"n": 50, "pairs": 1275}]
    assert forwards(100, 500)["forwards"] == 500


def test_bytes_of_the_article():
    found = cache_bytes(LLAMA.shape, LLAMA.parameters, (1, 4096, 128_000), (1, 32))
    token = found["token"]
    sizes = [token[name] for name in ("key_bytes", "head_bytes", "layer_bytes", "all_layers_bytes")]
    assert sizes == [256, 512, 4096, 131_072]
    cells = {(c["tokens"], c["users"], c["heads"]): c["bytes"] for c in found["cells"]}
    assert cells[4096, 1, 8] == 512 * 2**20
    assert cells[128_000, 1, 8] == 16_777_216_000
    assert cells[4096, 32, 8] == 16 * 2**30
    assert cells[4096, 1, 32] == 4 * cells[4096, 1, 8]
    assert found["weights_bytes"] == 16_060_522_496


def test_reading_the_weights_takes_longer_than_multiplying_them():
    ceiling = decode_ceiling(LLAMA.shape, LLAMA.parameters, Device(3.35e12, 989.5e12, measured=False))
    assert ceiling["reading_seconds"] == pytest.approx(16_060_522_496 / 3.35e12, rel=1e-4)
    assert ceiling["computing_seconds"] == pytest.approx(2 * LLAMA.parameters / 989.5e12)
    assert ceiling["tokens_per_second"] == pytest.approx(208.6, abs=0.1)


def test_the_requests_are_the_same_at_every_visit():
    assert lesson_request("Hello") == lesson_request("Hello")
    lanes = temperatures_request([1, 2]).lanes
    assert [lane.greedy for lane in lanes] == [True, False, False, False, False, False]
    assert {lane.max_new_tokens for lane in lanes} == {1}
