"""Scores against a plain full forward, and against what the loop recorded of the same tokens."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedTokenizerFast

from playground import score
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding
from playground.core.request import Request
from playground.core.run import fold
from playground.core.scoring import Scored
from playground.engine import score as scoring
from playground.engine.continuation import encode_continuation
from playground.engine.decode import stream
from playground.engine.errors import RequestError
from playground.engine.model import LoadedModel
from playground.engine.score import CannotScore
from playground.engine.vocabulary import Vocabulary
from tests.engine.conftest import loaded, tiny_module
from tests.engine.families import FAMILIES, tiny

LN_2 = math.log(2)


@torch.inference_mode()
def plain(model: LoadedModel, ids: Sequence[int]) -> torch.Tensor:
    """(positions, vocabulary): log_softmax of one full forward without a cache."""
    output = model.module(input_ids=torch.tensor([list(ids)]), use_cache=False)
    return torch.log_softmax(output.logits[0].float(), -1)


def check(found: Sequence[Scored], ids: Sequence[int], reference: torch.Tensor, tolerance: float) -> None:
    """Every number of `found` against the row before its token."""
    for one in found:
        assert one.token.id == ids[one.position]
        if one.position == 0:
            assert (one.rank, one.logprob, one.expected) == (None, None, ())
            continue
        row = reference[one.position - 1]
        assert one.logprob == pytest.approx(float(row[one.token.id]), abs=tolerance)
        assert one.entropy_bits == pytest.approx(float(-(row.exp() * row).sum()) / LN_2, abs=1e-4)
        assert one.rank is not None
        # a rank lies between those that the reference gives within the tolerance: near ties may swap
        above = int((row > row[one.token.id] + 2 * tolerance).sum())
        assert above < one.rank <= int((row >= row[one.token.id] - 2 * tolerance).sum())
        best = row.topk(len(one.expected)).values.tolist()
        assert [other.logprob for other in one.expected] == pytest.approx(best, abs=tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_a_full_forward(family: str) -> None:
    model = tiny(family)
    found = score(model, Request("the quick brown fox says", chat=False), " hello world, own fox")
    ids = model.tokenizer("the quick brown fox says")["input_ids"] + [one.token.id for one in found.tokens]
    assert found.prompt_tokens == len(ids) - len(found.tokens)
    check(found.tokens, ids, plain(model, ids), 1e-5)
    whole = score(model, Request(prompt_ids=tuple(ids)), top=20)
    check(whole.tokens, ids, plain(model, ids), 1e-5)
    assert whole.logprob == pytest.approx(sum(one.logprob or 0.0 for one in whole.tokens))


@pytest.mark.parametrize("decoding", [GREEDY, Decoding(temperature=1.5, top_p=1.0, seed=3)])
def test_scores_are_what_the_loop_recorded(model: LoadedModel, decoding: Decoding) -> None:
    request = Request("hello world", (replace(decoding, max_new_tokens=40),), chat=True)
    run = fold(stream(model, request))
    steps = run.lanes[0].steps
    found = score(model, Request(prompt_ids=(*run.prompt_ids, *run.lanes[0].token_ids)))
    for step, one in zip(steps, found.tokens[len(run.prompt_ids) :], strict=True):
        assert (one.position, one.token, one.rank) == (step.position, step.token, step.raw_rank)
        assert one.logprob == pytest.approx(
            step.raw_logprob, abs=5e-5
        )  # with a cache fp32 rounds differently
        assert one.entropy_bits == pytest.approx(step.raw_entropy_bits, abs=1e-4)
        top = [candidate.token.id for candidate in step.candidates[:5]]
        assert [other.token.id for other in one.expected] == top


def test_a_candidate_asked_by_name_at_a_step(model: LoadedModel) -> None:
    """Case 18: the probability and rank of one of several tokens, the product along the path."""
    run = fold(stream(model, Request("One day, Lily", (replace(GREEDY, max_new_tokens=6),), chat=False)))
    here = (*run.prompt_ids, *run.lanes[0].token_ids[:3])
    found = score(model, Request(prompt_ids=here), " gravity met 聪")
    assert "".join(one.token.bytes for one in found.tokens) == " gravity met 聪".encode().hex()
    reference = plain(model, [*here, *(one.token.id for one in found.tokens)])
    check(found.tokens, [*here, *(one.token.id for one in found.tokens)], reference, 1e-5)
    product = math.prod(one.probability or 0.0 for one in found.tokens)
    assert found.probability == pytest.approx(product, rel=1e-9)
    assert found.tokens[0].position == len(here)
    listed = [
        (rank, candidate.token)
        for rank, candidate in enumerate(run.lanes[0].steps[3].candidates, start=1)
        if model.tokenizer(candidate.token.text, add_special_tokens=False)["input_ids"]
        == [candidate.token.id]
    ]
    for rank, token in listed[:3]:
        (asked,) = score(model, Request(prompt_ids=here), token.text).tokens
        assert (asked.token, asked.rank) == (token, rank)
    assert listed


def test_ties_are_ranked_by_id(make_model: Callable[..., LoadedModel]) -> None:
    model = make_model()
    with torch.no_grad():
        model.module.get_output_embeddings().weight.zero_()
    found = score(model, Request(prompt_ids=(5, 9, 0, 300)))
    assert [one.rank for one in found.tokens] == [None, 10, 1, 301]
    assert [other.token.id for other in found.tokens[1].expected] == [0, 1, 2, 3, 4]
    vocabulary = model.facts.vocabulary
    assert found.tokens[1].logprob == pytest.approx(-math.log(vocabulary))
    assert found.tokens[1].entropy_bits == pytest.approx(math.log2(vocabulary))


class Largest(TorchDispatchMode):
    """Numbers of the largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        for one in made if isinstance(made, tuple | list) else (made,):
            if isinstance(one, torch.Tensor):
                self.numbers = max(self.numbers, one.numel())
        return made


def test_the_logits_of_2000_tokens_at_152_k_never_stand_in_memory_at_once(tokenizer: Any) -> None:
    vocabulary = 151_936
    model = loaded(tiny_module(vocabulary, max_position_embeddings=4096, hidden_size=8), tokenizer)
    ids, largest = tuple(5 + i * 7 % 300 for i in range(2000)), Largest()

    def watched() -> Any:
        with largest:
            return score(model, Request(prompt_ids=ids), top=2)

    found = model.turns.take(watched)
    assert len(found.tokens) == 2000
    assert 50 * vocabulary < largest.numbers <= scoring.LOGITS_NUMBERS_LIMIT < 2000 * vocabulary / 15
    some = [one for one in found.tokens if one.position in (1, 700, 1999)]
    check(some, ids, plain(model, ids), 2e-5)


def test_chunks_change_nothing(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, shapes = tuple(5 + i * 7 % 300 for i in range(200)), []
    model.module.get_output_embeddings().register_forward_hook(lambda *hooked: shapes.append(hooked[2].shape))
    whole = score(model, Request(prompt_ids=ids))
    monkeypatch.setattr(scoring, "LOGITS_NUMBERS_LIMIT", 10 * model.facts.vocabulary)
    shapes.clear()
    parts = score(model, Request(prompt_ids=ids))
    assert {tuple(shape) for shape in shapes} == {
        (1, 10, model.facts.vocabulary),
        (1, 9, model.facts.vocabulary),
    }
    for one, other in zip(whole.tokens[1:], parts.tokens[1:], strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=2e-5)


def test_a_long_prompt_is_only_read_and_tells_how_far(model: LoadedModel) -> None:
    told: list[tuple[int, int]] = []
    ids = tuple(5 + i * 7 % 300 for i in range(600))
    found = score(model, Request(prompt_ids=ids), " fox", progress=lambda *one: told.append(one))
    assert [done for done, _ in told[:3]] == [256, 512, 600]
    check(found.tokens, [*ids, *(one.token.id for one in found.tokens)],
          plain(model, [*ids, *(one.token.id for one in found.tokens)]), 2e-5)  # fmt: skip


def test_a_stop_is_seen_before_the_next_forward(model: LoadedModel) -> None:
    control, told = Control(), []

    def stop_after_two(done: int, total: int) -> None:
        told.append(done)
        if len(told) == 2:
            control.stop()

    with pytest.raises(CannotScore, match="stopped"):
        score(model, Request(prompt_ids=(5,) * 1000), control=control, progress=stop_after_two)
    assert len(told) == 2


@pytest.mark.parametrize(
    ("request_", "text", "sentence"),
    [
        (Request("hello", chat=False), "", "text to score is empty"),
        (Request("", chat=False), "a", "prompt is empty"),
        (Request(5, chat=False), "a", "The prompt must be text, not 5"),
        (Request("hello", chat=False), 5, "The text must be text, not 5"),
        (Request("hello", system=[]), "a", "The system prompt must be text"),
        (Request(prompt_ids=("1",)), "a", "prompt_ids must be a list of token ids"),
        (Request(prompt_ids=(True, 1.5)), "a", "prompt_ids must be a list of token ids"),
        (Request("hello", chat=False), "\ud800", "The text contains half of a surrogate pair"),
        (Request("hello", chat=False), "x" * 400_001, "The text has 400,001 characters"),
        (Request("hello", chat=False), " 😊聪" * 400, "Prompt and text have"),
        (Request(prompt_ids=(5,) * 1026), None, "have 1,026 tokens together and this model reads at most 1,024"),
        (Request(prompt_ids=(5,)), None, "The prompt is one token"),
        (Request(prompt_ids=(10**6,)), "a", "outside this model's vocabulary"),
    ],
)  # fmt: skip
def test_what_cannot_be_scored_is_one_sentence(
    model: LoadedModel, request_: Request, text: str | None, sentence: str
) -> None:
    with pytest.raises(RequestError, match=sentence) as refused:
        score(model, request_, text)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize("top", [-1, 21, True, "5"])
def test_a_top_out_of_range(model: LoadedModel, top: Any) -> None:
    with pytest.raises(RequestError, match="top must be a whole number"):
        score(model, "hello", "a", top=top)


def test_the_last_position_of_the_context_can_be_scored(model: LoadedModel) -> None:
    """The loop chooses one token more than it reads, so a whole run of it can be asked about."""
    found = score(model, Request(prompt_ids=(5,) * 1025), top=0)
    assert found.tokens[-1].rank is not None and found.tokens[-1].expected == ()


@pytest.mark.parametrize("broken", ["nan", "raises"])
def test_a_model_that_fails_is_one_sentence(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    model = make_model()
    if broken == "nan":
        with torch.no_grad():
            model.module.get_output_embeddings().weight.fill_(float("nan"))
    else:
        monkeypatch.setattr(model.module, "forward", lambda **_: 1 / 0)
    with pytest.raises(CannotScore, match="could not be scored") as failed:
        score(model, "hello", " world")
    assert str(failed.value).endswith("nothing was changed.")


def test_chat_and_text_prompts(model: LoadedModel) -> None:
    chat, raw = score(model, "hello", " world"), score(model, Request("hello", chat=False), " world")
    assert [one.token for one in chat.tokens] == [one.token for one in raw.tokens]
    assert chat.prompt_tokens > raw.prompt_tokens
    assert chat.logprob != raw.logprob
    stop = score(model, "hello", "</s>")
    assert stop.tokens[0].token.special and stop.tokens[0].token.id == 1


def test_sixteen_bit_says_so(make_model: Callable[..., LoadedModel]) -> None:
    model = make_model()
    half = loaded(model.module.to(torch.bfloat16), model.tokenizer)
    assert [note.key for note in score(half, "hello", " world").notes] == ["sixteen_bit"]


def test_a_cut_that_would_merge_with_the_prompt_is_noted(model: LoadedModel) -> None:
    joined = score(model, Request("hello worl", chat=False), "d")
    apart = score(model, Request("hello", chat=False), " world")
    assert [note.key for note in joined.notes] == ["seam"]
    assert [one.token.text for one in joined.tokens] == ["d"]
    assert apart.notes == ()


@pytest.fixture(scope="module")
def pieces() -> Any:
    """A tokenizer that puts a space before every text, as SentencePiece does, with byte fallback."""
    entries = [
        "<s>",
        "</s>",
        "<unk>",
        *(f"<0x{byte:02X}>" for byte in range(256)),
        "▁",
        "B",
        "e",
        "r",
        "l",
        "i",
        "n",
    ]
    entries += ["Be", "rl", "in", "Berl", "Berlin", "▁Berlin"]
    merges = [("B", "e"), ("r", "l"), ("i", "n"), ("Be", "rl"), ("Berl", "in"), ("▁", "Berlin")]
    vocabulary = {entry: i for i, entry in enumerate(entries)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


@pytest.mark.parametrize(
    ("text", "cut"), [("Berlin", ["Berlin"]), (" Berlin", [" Berlin"]), ("  Berlin", [" ", " Berlin"])]
)
def test_no_space_is_invented_before_a_continuation(pieces: Any, text: str, cut: list[str]) -> None:
    tokens, _ = encode_continuation(pieces, Vocabulary(pieces), (), text)
    assert [token.text for token in tokens] == cut


@pytest.mark.model
def test_the_default_model_agrees_with_a_plain_forward(default_model: LoadedModel) -> None:
    """Case 18."""
    prompt = "The capital of Germany is"
    found = score(default_model, Request(prompt, chat=False), " Berlin, which")
    ids = default_model.tokenizer(prompt + " Berlin, which")["input_ids"]
    assert [one.token.id for one in found.tokens] == ids[found.prompt_tokens :]
    check(found.tokens, ids, plain(default_model, ids), 1e-5)
    assert found.tokens[0].rank == 1
    assert found.notes == ()
