"""Every architecture against the slow reference: greedy and sampled, in lanes, in chunks, after a rewind.

All in fp32. Where the last bits of a sum may decide (a draw beside a boundary, two logits that tie)
the tests say so and check the numbers behind the choice instead.
"""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from playground.core.decoding import GREEDY, Decoding
from playground.core.draws import uniform
from playground.core.events import Prefilling, Stepped
from playground.core.request import Parent, Request
from playground.core.run import Lane, Run, fold
from playground.engine.decode import stream
from playground.engine.facts import kv_reasons
from playground.engine.model import LoadedModel
from playground.engine.room import PREFILL_CHUNK_TOKENS
from playground.engine.store import CacheStore
from tests.engine.families import CONFIGS, FAMILIES, WINDOW, WINDOWED, WITH_STATE, module, tiny
from tests.engine.reference import NEVER, greedy_ids, landed, processed_probabilities

TOKENS = 64
TIE = 1e-5
"""Two raw logits nearer than this may change places with the order of a sum."""
EDGE = 1e-4
"""A draw nearer than this to a boundary may land on either side."""

WARM = Decoding(temperature=1.3, top_k=60, top_p=0.95, min_p=0.01, repetition_penalty=1.2, seed=3)
OPEN = Decoding(temperature=1.5, top_p=1.0, seed=2)
LANES = (GREEDY, WARM, OPEN, Decoding(temperature=0.7, top_p=0.9, seed=8))
DEFAULT = "default"


@pytest.fixture(params=[*FAMILIES, pytest.param(DEFAULT, marks=pytest.mark.model)])
def model(request: pytest.FixtureRequest) -> LoadedModel:
    if request.param != DEFAULT:
        return tiny(request.param)
    shared = request.getfixturevalue("default_model")
    return replace(shared, stop_ids=frozenset(), caches=CacheStore())


def prompt(model: LoadedModel, text: str = "One day, Lily met the quick brown fox") -> tuple[int, ...]:
    return tuple(model.tokenizer(text, add_special_tokens=False)["input_ids"])


def run(model: LoadedModel, *lanes: Decoding, **request: Any) -> Run:
    request.setdefault("prompt_ids", prompt(model))
    return fold(stream(model, Request(lanes=lanes, **request)))


def step_pairs(ours: Lane, theirs: Lane) -> Iterator[tuple[Stepped, Stepped]]:
    """Steps side by side while both lanes stand on the same ids: up to the first that differs."""
    assert len(ours.steps) == len(theirs.steps) > 0
    pairs = zip(ours.steps, theirs.steps, strict=True)
    for mine, other in pairs:
        yield mine, other
        if mine.token.id != other.token.id:
            return


def assert_same_choices(ours: Lane, theirs: Lane) -> None:
    """The same ids, or numbers so near that the last bits decided; what follows then is another text."""
    for mine, other in step_pairs(ours, theirs):
        assert mine.logsumexp == pytest.approx(other.logsumexp, abs=1e-3)
        if mine.token.id != other.token.id:
            assert near(mine, other), f"step {mine.step} chose {mine.token.id}, not {other.token.id}"
            warnings.warn(f"a near tie decided step {mine.step}; the logits agree", stacklevel=2)


def near(mine: Stepped, other: Stepped) -> bool:
    """Whether two choices from one distribution differ by its last bits only."""
    if mine.draw is None:
        shares = {c.token.id: c.raw_logprob for c in mine.candidates}
        return abs(mine.raw_logprob - shares[other.token.id]) < TIE
    before = sum(p for c in mine.candidates if (p := c.processed_probability) > mine.processed_probability)
    edges = (before, before + mine.processed_probability)
    return min(abs(mine.draw - edge) for edge in edges) < EDGE


def test_greedy_ids_are_those_of_generate(model: LoadedModel) -> None:
    ours = run(model, replace(GREEDY, max_new_tokens=TOKENS)).lanes[0]
    assert ours.token_ids == greedy_ids(model.module, prompt(model), TOKENS, NEVER)
    assert len(set(ours.token_ids)) >= 10  # a model that says one thing only would prove little


@pytest.mark.parametrize("decoding", [WARM, OPEN])
def test_sampling_is_that_of_generate(
    model: LoadedModel, decoding: Decoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distribution of every step, and where the recorded draw lands on it."""
    lane = run(model, replace(decoding, max_new_tokens=TOKENS // 2), top_n=200).lanes[0]
    theirs = processed_probabilities(model.module, prompt(model), lane.token_ids, decoding, monkeypatch)
    for step, row in zip(lane.steps, theirs, strict=True):
        for candidate in step.candidates:
            assert candidate.processed_probability == pytest.approx(float(row[candidate.token.id]), abs=1e-5)
        assert step.kept_count == int((row > 0).sum())
        assert decoding.seed is not None and step.draw == uniform(decoding.seed, step.step)
        id, distance = landed(row, step.draw)
        assert step.token.id == id or distance < EDGE


def test_lanes_choose_together_what_each_chooses_alone(model: LoadedModel) -> None:
    """Two and four lanes, greedy and sampled, one of them shorter: its row leaves the batch."""
    long, short = (TOKENS, 41) if model.facts.name == "tiny" else (32, 20)
    lengths = (long, long, short, long)
    lanes = [replace(lane, max_new_tokens=tokens) for lane, tokens in zip(LANES, lengths, strict=True)]
    alone = [run(model, lane).lanes[0] for lane in lanes]
    for count in (2, 4):
        together = run(model, *lanes[:count]).lanes
        for lane, single in zip(together, alone, strict=False):
            assert_same_choices(lane, single)


@pytest.mark.parametrize(("decoding", "kept"), [(GREEDY, 0), (WARM, 3), (GREEDY, 40)])
def test_crop_and_continue_is_a_fresh_run(model: LoadedModel, decoding: Decoding, kept: int) -> None:
    """Back to step `kept` and on from there: what the cache cannot give back is computed again."""
    whole = run(model, replace(decoding, max_new_tokens=48), run="whole")
    ids = (*whole.prompt_ids, *whole.lanes[0].token_ids[:kept])
    again = run(
        model, replace(decoding, max_new_tokens=48 - kept), prompt_ids=ids, parent=Parent("whole", kept)
    )
    assert again.lanes[0].token_ids == whole.lanes[0].token_ids[kept:]
    assert again.prefilled is not None
    computed, reused = again.prefilled.tokens_computed, again.prefilled.tokens_reused
    assert computed + reused == len(ids) and computed >= 1
    if not {*WINDOWED, *WITH_STATE} & {str(model.module.config.model_type)}:
        assert computed == 1


def test_a_branch_is_a_fresh_run_from_its_ids(model: LoadedModel) -> None:
    """Another token at step 20: the past up to there is shared, what follows is new."""
    whole = run(model, replace(WARM, max_new_tokens=32), run="whole")
    chosen = whole.lanes[0].token_ids
    ids = (*whole.prompt_ids, *chosen[:20], chosen[20] - 1)
    continued = replace(WARM, max_new_tokens=24)
    branch = run(model, continued, prompt_ids=ids, parent=Parent("whole", 21))
    fresh = run(model, continued, prompt_ids=ids, parent=Parent("unknown", 21))
    assert fresh.prefilled is not None and fresh.prefilled.tokens_reused == 0
    assert_same_choices(branch.lanes[0], fresh.lanes[0])


def test_a_resumed_run_goes_on_as_if_never_stopped(model: LoadedModel) -> None:
    """Nothing has to be taken back, so every kind of cache is used as it is."""
    whole = run(model, replace(WARM, max_new_tokens=48))
    part = run(model, replace(WARM, max_new_tokens=24), run="part")
    ids = (*part.prompt_ids, *part.lanes[0].token_ids)
    rest = run(model, replace(WARM, max_new_tokens=24), prompt_ids=ids, parent=Parent("part", 24))
    assert part.lanes[0].token_ids + rest.lanes[0].token_ids == whole.lanes[0].token_ids
    assert rest.prefilled is not None
    assert (rest.prefilled.tokens_computed, rest.prefilled.tokens_reused) == (1, len(ids) - 1)


def test_a_prompt_read_in_chunks_is_one_forward(model: LoadedModel) -> None:
    seen: list[torch.Tensor] = []

    class Metric:
        def on_prefill(self, event: Any, live: Any) -> None:
            seen.append(live.raw_logits[0].clone())

    chunks = 2 if model.facts.name == "tiny" else 1
    ids = tuple(5 + i * 7 % 300 for i in range(chunks * PREFILL_CHUNK_TOKENS + 88))
    request = Request(prompt_ids=ids, lanes=(replace(GREEDY, max_new_tokens=12),))
    ours = fold(stream(model, request, callbacks=[Metric()]))
    with torch.inference_mode():
        whole = model.module(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
    assert [e.done_tokens for e in ours.events if isinstance(e, Prefilling)] == [
        *range(256, len(ids), 256),
        len(ids),
    ]
    limit = max(1.1e-5, 2e-6 * float(whole.abs().max()))  # the default model's logits reach 35
    assert float((seen[0] - whole).abs().max()) < limit
    assert ours.lanes[0].token_ids == greedy_ids(model.module, ids, 12, NEVER)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_bytes_of_every_step_are_the_arithmetic(name: str) -> None:
    """To the byte; of a window, transformers keeps one position less than the config says."""
    model = tiny(name)
    assert model.spec is not None
    windowed = "kv_window" in {reason.key for reason in kv_reasons(model.module.config, model.spec)}
    assert windowed == (name in WINDOWED)
    for step in run(model, replace(GREEDY, max_new_tokens=TOKENS)).lanes[0].steps:
        assert step.kv_used_bytes is not None and step.kv_predicted_bytes is not None
        missing = step.kv_predicted_bytes - step.kv_used_bytes
        assert missing > 0 if windowed and step.kv_tokens >= WINDOW else missing == 0


def test_a_padded_row_is_named_and_can_be_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that the tokenizer does not use may still be the most probable."""
    model, original = tiny("llama"), module("llama").forward
    padded = len(model.tokenizer) + 3

    def forward(**inputs: Any) -> Any:
        output = original(**inputs)
        output.logits[..., padded] += 100
        return output

    monkeypatch.setattr(model.module, "forward", forward)
    model.lean_step = None
    first = run(model, replace(GREEDY, max_new_tokens=2), run="first").lanes[0]
    assert [step.token.text for step in first.steps] == [f"unused id {padded}"] * 2 and first.text == ""
    ids = (*prompt(model), padded, padded)
    again = run(model, replace(GREEDY, max_new_tokens=1), prompt_ids=ids, parent=Parent("first", 2))
    assert again.lanes[0].token_ids == [padded]
    assert again.prefilled is not None and again.prefilled.tokens_computed == 1


@pytest.mark.parametrize("name", WINDOWED)
def test_a_window_slides_and_matters(name: str) -> None:
    """The same weights with a long window answer otherwise, once the text is longer than the short one."""
    key = "attention_chunk_size" if name == "llama4_text" else "sliding_window"
    wide = AutoModelForCausalLM.from_config(AutoConfig.for_model(name, **CONFIGS[name] | {key: 512})).eval()
    wide.load_state_dict(module(name).state_dict())
    model = tiny(name)
    ids = run(model, replace(GREEDY, max_new_tokens=TOKENS)).lanes[0].token_ids
    assert len(prompt(model)) < WINDOW < len(prompt(model)) + TOKENS
    others = greedy_ids(wide, prompt(model), TOKENS, NEVER)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(ids, others, strict=True))))
    assert WINDOW - len(prompt(model)) < same < TOKENS


@cache
def live_layers(name: str) -> tuple[tuple[str, int | None], ...]:
    """Kind of each layer of the cache after 64 tokens, and the positions that it then holds."""
    found: list[tuple[str, int | None]] = []

    class Metric:
        def on_step(self, event: Stepped, live: Any) -> None:
            found[:] = [(type(layer).__name__, positions(layer)) for layer in live.cache.layers]

    request = Request(prompt_ids=prompt(tiny(name)), lanes=(replace(GREEDY, max_new_tokens=TOKENS),))
    fold(stream(tiny(name), request, callbacks=[Metric()]))
    return tuple(found)


def positions(layer: Any) -> int | None:
    keys = getattr(layer, "keys", None)
    return None if keys is None else int(keys.shape[-2])


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_brings_its_kinds_of_layer(name: str) -> None:
    held = len(prompt(tiny(name))) + TOKENS - 1
    windowed = [kept for kind, kept in live_layers(name) if "Sliding" in kind]
    state = [kind for kind, _ in live_layers(name) if "Linear" in kind]
    full = [kept for kind, kept in live_layers(name) if kept is not None and "Sliding" not in kind]
    assert bool(windowed) == (name in WINDOWED) and bool(state) == (name in WITH_STATE)
    assert set(full) <= {held} and bool(full) == (name not in ("mistral", "mamba2"))
    assert set(windowed) <= {WINDOW - 1}
