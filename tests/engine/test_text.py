"""Bytes of tokens, and text that is exact to the character."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from playground.core.request import Request
from playground.engine.errors import RequestError
from playground.engine.prompts import encode_prompt
from playground.engine.text import StopStrings, TextStream
from playground.engine.vocabulary import Vocabulary
from tests.engine.conftest import byte_level_tokenizer

SPLIT = ["😊", "聪", "👩‍🔬", "𠮷", "a\n\n    b\t", "naïve — “quotes”", "\u0000\u001b[0m"]


def sentencepiece_tokenizer() -> Any:
    pieces = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁", "▁Hello", "▁wor", "ld"]
    merges: list[tuple[str, str]] = []
    bpe = models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>", byte_fallback=True)
    tokenizer = Tokenizer(bpe)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


SENTENCEPIECE = sentencepiece_tokenizer()


@pytest.mark.parametrize("text", SPLIT)
def test_bytes_of_the_pieces_are_the_bytes_of_the_text(tokenizer: Any, text: str) -> None:
    """Case 1: ids stay exact, each piece carries its own bytes."""
    tokens = Vocabulary(tokenizer).tokens(tokenizer(text)["input_ids"])
    assert bytes.fromhex("".join(token.bytes for token in tokens)).decode() == text


@pytest.mark.parametrize("text", SPLIT)
def test_streamed_text_is_held_until_a_character_is_whole(tokenizer: Any, text: str) -> None:
    """Case 1: no half character ever shows, and the pieces joined are the whole."""
    ids = tokenizer(text)["input_ids"]
    stream = TextStream(tokenizer, Vocabulary(tokenizer), [])
    pieces = [stream.add(id) for id in ids]
    assert not any("\ufffd" in piece for piece in pieces)
    assert "".join(pieces) + stream.tail() == text


def test_an_unfinished_character_is_flushed_at_the_end(tokenizer: Any) -> None:
    ids = tokenizer("ok 𠮷")["input_ids"][:-1]
    stream = TextStream(tokenizer, Vocabulary(tokenizer), [])
    shown = "".join(map(stream.add, ids))
    assert "\ufffd" not in shown
    assert shown + stream.tail() == tokenizer.decode(ids)


def test_sentencepiece_bytes_and_spaces() -> None:
    tokenizer = sentencepiece_tokenizer()
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.token(3 + 0xE8).bytes == "e8"
    assert vocabulary.token(260).text == " Hello" and vocabulary.token(262).text == "ld"
    stream = TextStream(tokenizer, vocabulary, [260])
    assert [stream.add(i) for i in (261, 262, 3 + 0xE8, 3 + 0x81, 3 + 0xAA)] == [" wor", "ld", "", "", "聪"]


def test_special_tokens_are_named_and_control_characters_kept(tokenizer: Any) -> None:
    """Case 5."""
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.token(1) == vocabulary.token(1).__class__(1, "</s>", b"</s>".hex(), True)
    quote = vocabulary.token(tokenizer.convert_tokens_to_ids('"'))
    assert quote.text == '"' and not quote.special
    assert vocabulary.token(len(tokenizer) + 5).text == f"unused id {len(tokenizer) + 5}"


def test_a_leading_space_belongs_to_the_token(tokenizer: Any) -> None:
    """Case 2: " os" and "os" are two rows."""
    a, b = tokenizer("Hello os")["input_ids"][-1], tokenizer("os")["input_ids"][0]
    vocabulary = Vocabulary(tokenizer)
    assert vocabulary.token(a).text.startswith(" ") and vocabulary.token(a) != vocabulary.token(b)


def test_a_lone_space_at_the_end_is_said_and_never_stripped(tokenizer: Any) -> None:
    """Case 6."""
    vocabulary = Vocabulary(tokenizer)
    with_space = encode_prompt(tokenizer, vocabulary, Request("Lily met a cat ", chat=False))
    without = encode_prompt(tokenizer, vocabulary, Request("Lily met a cat", chat=False))
    assert with_space.tokens[-1].text == " " and with_space.ids[:-1] == without.ids
    assert [note.key for note in with_space.notes] == ["lone_space"] and without.notes == ()


def test_exactly_one_bos_with_a_template_that_writes_its_own() -> None:
    """Case 26."""
    tokenizer = byte_level_tokenizer(template="<s>{{ messages[0].content }}", adds_bos=True)
    vocabulary = Vocabulary(tokenizer)
    chat = encode_prompt(tokenizer, vocabulary, Request("hello"))
    assert chat.ids.count(0) == 1
    raw = encode_prompt(tokenizer, vocabulary, Request("hello", chat=False))
    assert raw.ids.count(0) == 1 and [note.key for note in raw.notes] == ["raw_adds"]
    assert raw.own == (False, *(True,) * (len(raw.ids) - 1))


def test_a_base_model_says_that_it_has_no_template() -> None:
    """Case 27."""
    tokenizer = byte_level_tokenizer(template=None)
    prompt = encode_prompt(tokenizer, Vocabulary(tokenizer), Request("hello"))
    assert [note.key for note in prompt.notes] == ["no_template"]
    assert prompt.ids == tuple(tokenizer("hello")["input_ids"])


def test_your_words_are_told_from_the_templates(tokenizer: Any) -> None:
    prompt = encode_prompt(tokenizer, Vocabulary(tokenizer), Request("hello world", system="own fox"))
    mine = [t.text for t, own in zip(prompt.tokens, prompt.own, strict=True) if own]
    assert "".join(mine) == "hello world"
    assert "own fox" in "".join(t.text for t in prompt.tokens)


def test_a_template_that_refuses_is_one_sentence() -> None:
    tokenizer = byte_level_tokenizer(template="{{ raise_exception('no system here') }}")
    with pytest.raises(RequestError, match="refused this prompt.*no system here"):
        encode_prompt(tokenizer, Vocabulary(tokenizer), Request("hello"))


@pytest.mark.parametrize(
    ("text", "added", "found", "held"),
    [
        ("the own fox", 4, (4, "own fox"), 7),
        ("the own", 3, None, 3),
        ("the own f", 2, None, 5),
        ("the owl", 1, None, 0),
        ("END", 3, (0, "END"), 3),
        ("own own f", 2, None, 5),
    ],
)
def test_stop_strings(text: str, added: int, found: tuple[int, str] | None, held: int) -> None:
    stops = StopStrings(("own fox", "END"))
    assert stops.found(text, added) == found
    assert stops.held(text, added) == held


@settings(max_examples=150, deadline=None)
@given(ids=st.lists(st.integers(3, 262), max_size=12))
def test_any_bytes_a_model_writes_are_streamed(ids: list[int]) -> None:
    """Byte fallback in any order, whole characters or not: nothing raises, nothing is lost."""
    vocabulary = Vocabulary(SENTENCEPIECE)
    stream = TextStream(SENTENCEPIECE, vocabulary, [])
    shown = "".join(map(stream.add, ids))
    data = b"".join(bytes.fromhex(vocabulary.token(id).bytes) for id in ids)
    assert shown + stream.tail() == stream.text == data.decode("utf-8", "replace")


def test_pieces_joined_by_a_tokenizers_own_rules() -> None:
    """WordPiece: "##" joins, words are set apart, and the pieces joined are the decoding of all ids."""
    words = {"[UNK]": 0, "the": 1, "cat": 2, "##s": 3, "sat": 4, ".": 5}
    tokenizer = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]")
    vocabulary = Vocabulary(fast)
    assert not vocabulary.exact
    stream = TextStream(fast, vocabulary, [])
    assert [stream.add(id) for id in (1, 2, 3, 4, 5)] == ["the", " cat", "s", " sat", " ."]
    assert stream.text + stream.tail() == fast.decode([1, 2, 3, 4, 5], clean_up_tokenization_spaces=False)


@pytest.mark.parametrize("prompt", ["assistant", "user", "a", "<|assistant|>", " padded "])
def test_your_words_are_found_though_the_template_holds_them_too(tokenizer: Any, prompt: str) -> None:
    encoded = encode_prompt(tokenizer, Vocabulary(tokenizer), Request(prompt, system="user a"))
    mine = [i for i, own in enumerate(encoded.own) if own]
    assert "".join(encoded.tokens[i].text for i in mine) == prompt
    assert mine == list(range(mine[0], mine[-1] + 1))
    assert [t.text for t in encoded.tokens[mine[-1] + 1 :]] == ["</s>", "<|assistant|>"]
