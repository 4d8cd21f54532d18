"""The loop against the slow reference, and everything that ends it."""

import threading
import time
from dataclasses import replace
from typing import Any

import pytest
import torch

from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.events import Failed, Finished, Prefilled, Prefilling, Started, Stepped
from playground.core.metrics import timing
from playground.core.report import generation
from playground.core.request import Parent, Request
from playground.core.run import Run, fold
from playground.core.trace import dumps_trace, loads_trace
from playground.engine.clock import Clock
from playground.engine.decode import stream
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from tests.engine.reference import greedy_ids, processed_probabilities

HOT = Decoding(temperature=1.3, top_k=60, top_p=0.95, min_p=0.01, repetition_penalty=1.2, seed=3)
NEVER = frozenset[int]()


def run(model: LoadedModel, *lanes: Decoding, prompt: str = "hello world", **request: Any) -> Run:
    return fold(stream(model, Request(prompt, lanes, chat=False, **request)))


def counted(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Positions of each forward that runs from now on."""
    calls: list[int] = []
    original = model.module.forward

    def forward(**inputs: Any) -> Any:
        calls.append(inputs["input_ids"].shape[1])
        return original(**inputs)

    monkeypatch.setattr(model.module, "forward", forward)
    return calls


@pytest.mark.parametrize(
    "decoding",
    [
        HOT,
        Decoding(temperature=0.7, top_p=0.9, seed=1),
        Decoding(temperature=1.5, top_p=1.0, seed=2),
        Decoding(temperature=1.0, top_p=1.0, top_k=5, seed=4),
        Decoding(temperature=0.5, top_p=0.5, min_p=0.1, seed=5),
    ],
)
def test_processed_probabilities_are_those_of_generate(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch, decoding: Decoding
) -> None:
    ours = run(model, replace(decoding, max_new_tokens=24), top_n=200)
    lane = ours.lanes[0]
    theirs = processed_probabilities(model.module, ours.prompt_ids, lane.token_ids, decoding, monkeypatch)
    for step, row in zip(lane.steps, theirs, strict=False):
        for candidate in step.candidates:
            assert candidate.processed_probability == pytest.approx(float(row[candidate.token.id]), abs=1e-5)
        assert step.kept_count == int((row > 0).sum())


def test_lanes_together_choose_what_each_chooses_alone(model: LoadedModel) -> None:
    lanes = [
        GREEDY,
        HOT,
        replace(HOT, seed=9, max_new_tokens=7),
        Decoding(temperature=2.0, top_p=1.0, seed=8),
    ]
    together = run(model, *lanes)
    for lane, decoding in zip(together.lanes, lanes, strict=True):
        assert lane.token_ids == run(model, decoding).lanes[0].token_ids
    assert [len(lane.steps) for lane in together.lanes][2] == 7


def test_a_seed_repeats_and_an_unset_one_is_reported(model: LoadedModel) -> None:
    first = run(model, Decoding(temperature=1.5))
    seed = first.lanes[0].decoding.seed
    assert seed is not None
    assert run(model, Decoding(temperature=1.5, seed=seed)).lanes[0].token_ids == first.lanes[0].token_ids


def test_events_come_in_order_and_survive_a_trace(model: LoadedModel) -> None:
    events = list(stream(model, Request("hello", (replace(GREEDY, max_new_tokens=3),), chat=False)))
    kinds = [type(event) for event in events]
    assert kinds == [Started, Prefilling, Prefilled, Stepped, Stepped, Stepped, Finished]
    assert loads_trace(dumps_trace([fold(events)])).runs == [fold(events)]


def test_a_long_prompt_is_read_in_chunks_with_the_same_result(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 24: the progress of the prefill is told while it runs."""
    ids = tuple(5 + i * 7 % 300 for i in range(600))
    ours = fold(stream(model, Request(prompt_ids=ids, lanes=(replace(GREEDY, max_new_tokens=16),))))
    assert [e.done_tokens for e in ours.events if isinstance(e, Prefilling)] == [256, 512, 600]
    assert ours.lanes[0].token_ids == greedy_ids(model.module, ids, 16)


def test_the_cache_holds_prompt_and_generated_minus_one(model: LoadedModel) -> None:
    ours = run(model, GREEDY, HOT)
    per_token = 2 * 2 * 2 * 16 * 4  # layers, key and value, KV heads, head dimension, bytes of fp32
    for lane in ours.lanes:
        for step in lane.steps:
            assert step.kv_tokens == len(ours.prompt_ids) + step.step
            assert step.kv_used_bytes == step.kv_tokens * per_token
            assert step.kv_allocated_bytes is not None and step.kv_allocated_bytes >= step.kv_used_bytes


def test_decode_rate_does_not_contain_the_prefill(model: LoadedModel) -> None:
    """Case 31."""
    ours = run(model, replace(GREEDY, max_new_tokens=5))
    times, steps = timing(ours, ours.lanes[0]), ours.lanes[0].steps
    assert len(times.step_seconds) == 4
    assert times.decode_tokens_per_second == pytest.approx(4 / (steps[-1].end_seconds - steps[0].end_seconds))
    assert ours.prefilled is not None and steps[0].start_seconds >= ours.prefilled.end_seconds


def test_a_stop_lets_no_further_forward_run(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 20."""
    calls, control = counted(model, monkeypatch), Control()
    ours = Run()
    request = Request("hello", (replace(GREEDY, max_new_tokens=900),), chat=False)
    for event in stream(model, request, control=control):
        ours = fold([*ours.events, event])
        if isinstance(event, Stepped) and event.step == 4:
            control.stop()
            before = len(calls)
    assert len(calls) == before == 5
    assert ours.lanes[0].finish_reason == "cancelled" and len(ours.lanes[0].steps) == 5


def test_a_closed_generator_lets_no_further_forward_run(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(model, monkeypatch)
    events = stream(model, Request("hello", (GREEDY,), chat=False))
    for event in events:
        if isinstance(event, Stepped):
            break
    events.close()
    assert len(calls) == 1


def test_a_stop_string_over_several_tokens_never_shows(model: LoadedModel) -> None:
    """Case 19."""
    free = run(model, replace(HOT, max_new_tokens=40)).lanes[0]
    texts = [text for text in free.step_texts() if text.strip()]
    middle = "".join(free.step_texts()).find(texts[3])
    stop = "".join(free.step_texts())[middle - 1 : middle + 2]
    ours = run(model, replace(HOT, max_new_tokens=40, stop=(stop,)))
    lane = ours.lanes[0]
    assert lane.finish_reason == "stop_string" and stop not in lane.text
    assert lane.token_ids == free.token_ids[: len(lane.steps)]
    assert lane.withheld(len(lane.steps) - 1)
    assert "".join(lane.step_texts()).startswith(lane.text)
    for length in range(1, len(lane.steps) + 1):
        shown = fold(ours.events[: 3 + length]).lanes[0].text
        assert lane.text.startswith(shown)


def test_the_context_limit_ends_a_run_before_the_forward(make_model: Any) -> None:
    model = make_model(max_position_embeddings=16)
    model.stop_ids = NEVER
    lane = run(model, GREEDY, prompt_ids=tuple(range(5, 15))).lanes[0]
    assert lane.finish_reason == "context_limit"
    assert len(lane.steps) == 7  # one from the prefill, six forwards at positions 10 to 15
    with pytest.raises(RequestError, match="17 tokens.*at most 16"):
        run(model, GREEDY, prompt_ids=tuple(range(5, 22)))


def test_a_continued_run_reuses_the_cache_and_goes_on_as_if_never_stopped(model: LoadedModel) -> None:
    whole = run(model, replace(HOT, max_new_tokens=30))
    part = run(model, replace(HOT, max_new_tokens=10))
    ids = tuple(part.prompt_ids + part.lanes[0].token_ids)
    lanes = (replace(HOT, max_new_tokens=20),)
    rest = fold(stream(model, Request(prompt_ids=ids, lanes=lanes, parent=Parent(part.id, 10))))
    assert rest.prefilled is not None
    assert (rest.prefilled.tokens_computed, rest.prefilled.tokens_reused) == (1, len(ids) - 1)
    assert part.lanes[0].token_ids + rest.lanes[0].token_ids == whole.lanes[0].token_ids


def test_only_visible_settings_act(make_model: Any) -> None:
    """Case 15: what a model's generation_config suggests is a preset, never a hidden filter."""
    model = make_model()
    model.module.generation_config.top_k = 2
    model.module.generation_config.repetition_penalty = 1.9
    lane = run(model, Decoding(temperature=1.0, top_p=1.0, seed=1, max_new_tokens=4)).lanes[0]
    assert all(step.stages == () and step.kept_count == len(model.tokenizer) for step in lane.steps)
    ours = run(model, GREEDY)
    model.module.generation_config.repetition_penalty = None
    assert ours.lanes[0].token_ids == greedy_ids(model.module, ours.prompt_ids, 64)


@pytest.mark.parametrize("top_p", [0.0, 1e-8, 1e-4])
def test_a_tiny_top_p_is_greedy_in_16_bit_too(make_model: Any, top_p: float) -> None:
    """Case 12."""
    model = make_model()
    model.module, model.facts = model.module.to(torch.bfloat16), replace(model.facts, dtype="bfloat16")
    sampled = run(model, Decoding(temperature=0.7, top_p=top_p, seed=1, max_new_tokens=12))
    assert sampled.lanes[0].token_ids == run(model, replace(GREEDY, max_new_tokens=12)).lanes[0].token_ids
    assert [note.key for note in sampled.started.notes] == ["sixteen_bit"]  # type: ignore[union-attr]
    assert all(step.kept_count == 1 for step in sampled.lanes[0].steps)


def test_temperature_zero_is_greedy_without_noise(
    model: LoadedModel, recwarn: pytest.WarningsRecorder
) -> None:
    """Cases 8 and 14."""
    zero = run(model, Decoding(strategy="sample", temperature=0.0, top_k=3))
    assert zero.lanes[0].token_ids == run(model, GREEDY).lanes[0].token_ids
    raw = run(model, Decoding(temperature=1.0, top_p=1.0, seed=5)).lanes[0].steps[0]
    step = zero.lanes[0].steps[0]
    assert step.origin == "argmax" and step.draw is None
    assert [c.processed_probability for c in step.candidates] == [1.0] + [0.0] * (len(step.candidates) - 1)
    assert {c.removed_by for c in step.candidates[1:]} == {"greedy"}
    assert [c.raw_logprob for c in step.candidates] == [c.raw_logprob for c in raw.candidates]
    assert len(recwarn) == 0


def test_survivors_sum_to_one_and_removed_rows_are_zero(model: LoadedModel) -> None:
    """Case 8."""
    for step in run(model, Decoding(temperature=0.8, top_k=3, top_p=1.0, seed=1), top_n=10).lanes[0].steps:
        kept = [c for c in step.candidates if c.removed_by is None]
        assert sum(c.processed_probability for c in kept) == pytest.approx(1, abs=1e-6)
        gone = [c for c in step.candidates if c.removed_by]
        assert {c.removed_by for c in gone} == {"top_k"}
        assert {c.processed_probability for c in gone} == {0.0}
        assert len(kept) == 3 and len(gone) == 7


def test_an_alternative_is_appended_by_its_id(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 3: nothing is encoded again from what is displayed, a leading space included."""
    first = run(model, Decoding(temperature=2.0, top_p=1.0, seed=4, max_new_tokens=12), top_n=200)
    chosen = [
        (*first.prompt_ids, *first.lanes[0].token_ids[: step.step], candidate.token.id)
        for step in first.lanes[0].steps
        for candidate in step.candidates
        if candidate.token.text.startswith(" ") and candidate.token.id != step.token.id
    ]
    texts = ["".join(token.text for token in model.vocabulary.tokens(ids)) for ids in chosen]
    ids, text = next(
        (ids, text)
        for ids, text in zip(chosen, texts, strict=True)
        if model.tokenizer(text)["input_ids"] != list(ids)  # encoding again would be noticed
    )
    monkeypatch.setattr("playground.engine.prompts._tokenize", lambda *_, **__: pytest.fail("encoded again"))
    again = fold(stream(model, Request(text, (replace(GREEDY, max_new_tokens=4),), prompt_ids=ids)))
    assert again.started is not None
    assert tuple(token.id for token in again.started.prompt) == ids
    assert again.lanes[0].token_ids == greedy_ids(model.module, ids, 4)


def test_both_probabilities_are_named_in_the_export_and_in_the_trace(model: LoadedModel) -> None:
    """Case 9."""
    ours = run(model, Decoding(temperature=0.5, top_p=0.9, seed=1, max_new_tokens=4), top_n=200)
    assert loads_trace(dumps_trace([ours])).runs[0].lanes[0].steps == ours.lanes[0].steps
    for shown in generation(ours)["steps"]:
        assert {"raw_probability", "processed_probability"} <= shown.keys()
        raw, processed = (
            [candidate[f"{name}_probability"] for candidate in shown["candidates"]]
            for name in ("raw", "processed")
        )
        assert raw != processed
        assert 0 < sum(raw) < 1  # half of the vocabulary is listed, and all that is left by top-p
        assert sum(processed) == pytest.approx(1, abs=1e-5)


def test_the_chosen_token_is_among_its_own_steps_candidates(model: LoadedModel) -> None:
    """Cases 10 and 11."""
    lane = run(model, Decoding(temperature=3.0, top_p=1.0, seed=2), top_n=5).lanes[0]
    assert any(step.raw_rank > 5 for step in lane.steps)
    for step in lane.steps:
        chosen = [c for c in step.candidates if c.token.id == step.token.id]
        assert len(chosen) == 1 and chosen[0].removed_by is None
        assert chosen[0].raw_logprob == step.raw_logprob
        better = sum(c.raw_logprob > step.raw_logprob for c in step.candidates)
        assert step.raw_rank == better + 1 if step.raw_rank <= 5 else better == 5


def test_a_failing_forward_keeps_what_was_made(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    original, calls = model.module.forward, []

    def forward(**inputs: Any) -> Any:
        calls.append(1)
        if len(calls) == 4:
            raise MemoryError
        return original(**inputs)

    monkeypatch.setattr(model.module, "forward", forward)
    ours = run(model, GREEDY)
    assert isinstance(ours.events[-1], Failed) and "not enough memory" in ours.events[-1].message
    assert len(ours.lanes[0].steps) == 3 and ours.done


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Request("", chat=False), "empty"),
        (Request("a\ud83d", chat=False), "surrogate"),
        (Request("x" * 500_000, chat=False), "500,000 characters"),
        (Request("hello " * 20_000, chat=False), "at most 1,024"),
        (Request(prompt_ids=()), "empty"),
        (Request(prompt_ids=(3, 100_000)), "100000 is outside"),
        (Request("hi", lanes=()), "1 to 64 lanes"),
    ],
)
def test_a_bad_request_is_one_sentence(model: LoadedModel, request_: Request, sentence: str) -> None:
    with pytest.raises(RequestError, match=sentence):
        stream(model, request_)


@pytest.mark.parametrize(
    "bad", [dict(temperature=-1), dict(temperature=float("nan")), dict(top_p=2), dict(max_new_tokens=0)]
)
def test_a_bad_setting_is_one_sentence(model: LoadedModel, bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(bad))):
        stream(model, Request("hi", (Decoding(**bad),)))


def test_top_k_above_the_vocabulary_keeps_everything(model: LoadedModel) -> None:
    step = run(model, Decoding(temperature=1.0, top_p=1.0, top_k=10**6, seed=1)).lanes[0].steps[0]
    assert step.kept_count == len(model.tokenizer)


def test_control_characters_are_read_as_they_are(model: LoadedModel) -> None:
    ours = run(model, GREEDY, prompt="a\x00\x1b[31m\x07b")
    assert bytes.fromhex("".join(t.bytes for t in ours.started.prompt)) == b"a\x00\x1b[31m\x07b"  # type: ignore[union-attr]


def test_logits_that_are_not_numbers_end_the_run_in_a_sentence(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = model.module.forward

    def forward(**inputs: Any) -> Any:
        output = original(**inputs)
        if inputs["input_ids"].shape[1] == 1:
            output.logits.fill_(float("nan"))
        return output

    monkeypatch.setattr(model.module, "forward", forward)
    ours = run(model, GREEDY)
    assert isinstance(ours.events[-1], Failed) and "not numbers" in ours.events[-1].message
    assert len(ours.lanes[0].steps) == 1 and loads_trace(dumps_trace([ours])).runs == [ours]


@pytest.mark.alone
def test_waiting_for_the_model_is_told_apart_from_reading_the_prompt(model: LoadedModel) -> None:
    busy = threading.Thread(target=lambda: model.turns.take(lambda: time.sleep(0.4)))
    busy.start()
    time.sleep(0.05)
    ours = run(model, replace(GREEDY, max_new_tokens=2))
    busy.join()
    times = timing(ours, ours.lanes[0])
    assert times.queue_seconds > 0.2
    assert times.time_to_first_token_seconds is not None and times.time_to_first_token_seconds < 0.2


def test_the_first_run_of_a_model_is_marked_as_warm_up(make_model: Any) -> None:
    """Case 32: one-time work is in its clock, and the record says so."""
    model = make_model()
    first, second = (run(model, replace(GREEDY, max_new_tokens=2)) for _ in range(2))
    assert timing(first, first.lanes[0]).warm_up and not timing(second, second.lanes[0]).warm_up


def test_the_clock_waits_for_the_gpu_and_leaves_out_what_nobody_watched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Case 32: on a GPU a kernel that is still running is waited for before the clock is read."""
    waits: list[Any] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waits.append)
    clock = Clock("cuda:0")
    before = clock.seconds()
    clock.leave_out(100.0)
    assert clock.seconds() < before - 90 and waits == ["cuda:0", "cuda:0"]
    Clock("cpu").seconds()
    assert len(waits) == 2


def test_an_alternative_is_taken_by_its_id(model: LoadedModel) -> None:
    """Case 3: an alternative that begins with a space, or is half a character, is never read from its text."""
    first = run(model, replace(GREEDY, max_new_tokens=4), top_n=200)
    step = first.lanes[0].steps[2]
    spaced = next(c.token for c in step.candidates if c.token.text.startswith(" "))
    broken = next(c.token for c in step.candidates if "\ufffd" in c.token.text)
    for token in (spaced, broken):
        ids = (*first.prompt_ids, *first.lanes[0].token_ids[:2], token.id)
        branch = run(model, GREEDY, prompt_ids=ids, parent=Parent(first.id, 3))
        assert tuple(branch.prompt_ids) == ids
        assert branch.started is not None and branch.started.prompt[-1] == token
