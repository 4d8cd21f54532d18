"""Bytes of tokens, and text that is exact to the character."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from playground.core.request import Request
from playground.engine.errors import RequestError
from playground.engine.prompts import encode_prompt
from playground.engine.text import StopStrings, TextStream
from playground.engine.vocabulary import Vocabulary
from tests.engine.conftest import CORPUS, byte_level_tokenizer

SPLIT = ["😊", "聪", "👩‍🔬", "𠮷", "a\n\n    b\t", "naïve — “quotes”", "\u0000\u001b[0m"]


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SPECIALS = ["<unk>", "<s>", "</s>"]


def fast(tokenizer: Tokenizer, unk: str = "<unk>") -> Any:
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unk)


def sentencepiece_tokenizer() -> Any:
    """As Llama 2's: BPE over "▁" for a space, single bytes for what has no piece."""
    pieces = [*SPECIALS, *BYTES, "▁", "▁Hello", "▁wor", "ld"]
    merges: list[tuple[str, str]] = []
    bpe = models.BPE({p: i for i, p in enumerate(pieces)}, merges, unk_token="<unk>", byte_fallback=True)
    tokenizer = Tokenizer(bpe)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")


def unigram_tokenizer() -> Any:
    """A trained unigram model with byte fallback and without a stripped beginning, as Gemma's decoder."""
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(CORPUS * 3, trainers.UnigramTrainer(vocab_size=60, unk_token="<unk>"))
    pieces = [piece for piece in trained.get_vocab() if piece != "<unk>"]
    scored = [(piece, -float(place)) for place, piece in enumerate([*SPECIALS, *BYTES, *sorted(pieces)])]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=0, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return fast(tokenizer)


def wordpiece_tokenizer() -> Any:
    """As BERT's: "##" joins a piece to the one before, all others are set apart by a space."""
    words = ["[UNK]", "the", "cat", "##s", "sat", ".", "聪", "##明", "'", "##t", "n't", "😊"]
    tokenizer = Tokenizer(models.WordPiece({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    return fast(tokenizer, "[UNK]")


def word_end_tokenizer() -> Any:
    """As CLIP's and GPT-1's: the end of a word is marked, not its beginning."""
    words = ["<unk>", "the</w>", "ca", "t</w>", ".</w>", "聪</w>"]
    tokenizer = Tokenizer(models.BPE({w: i for i, w in enumerate(words)}, [], unk_token="<unk>"))
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    return fast(tokenizer)


TOKENIZERS = {
    "byte-level": byte_level_tokenizer(),
    "sentencepiece": sentencepiece_tokenizer(),
    "unigram": unigram_tokenizer(),
    "wordpiece": wordpiece_tokenizer(),
    "word-end": word_end_tokenizer(),
}


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


def whole(data: bytes) -> str | None:
    """The characters of `data` without an unfinished last one; None where a byte is astray."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        unfinished = error.reason == "unexpected end of data"
        return data[: error.start].decode() if unfinished else None


@pytest.mark.parametrize("kind", ["byte-level", "sentencepiece", "unigram"])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_ids_a_model_writes_are_streamed_to_the_byte(kind: str, data: st.DataObject) -> None:
    """Whole characters or not, special tokens and padded rows between them: nothing is lost or shown early."""
    tokenizer = TOKENIZERS[kind]
    vocabulary, first = Vocabulary(tokenizer), len(tokenizer) - 1
    ids = data.draw(st.lists(st.integers(0, len(tokenizer) + 3), max_size=16))
    stream, written, shown = TextStream(tokenizer, vocabulary, [first]), b"", ""
    for id in ids:
        token = vocabulary.token(id)
        written += b"" if token.special else bytes.fromhex(token.bytes)
        shown += stream.add(id)
        assert whole(written) in (None, shown)
    assert shown + stream.tail() == stream.text == written.decode("utf-8", "replace")
    if kind == "byte-level" or whole(written) == stream.text:
        # ByteFallback gives up a whole run of bytes for one that is astray; the characters are kept here.
        assert decoded(tokenizer, [first]) + stream.text == decoded(tokenizer, [first, *ids])


def decoded(tokenizer: Any, ids: list[int]) -> str:
    return str(tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))


@pytest.mark.parametrize("kind", ["wordpiece", "word-end"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_pieces_joined_by_a_tokenizers_own_rules(kind: str, data: st.DataObject) -> None:
    """What a piece adds depends on its neighbours; the pieces joined are the decoding of all ids."""
    tokenizer = TOKENIZERS[kind]
    vocabulary = Vocabulary(tokenizer)
    assert not vocabulary.exact
    some = st.lists(st.integers(0, len(tokenizer) + 3), max_size=12)
    prefix, ids = data.draw(some), data.draw(some)
    stream = TextStream(tokenizer, vocabulary, prefix)
    pieces = [stream.add(id) for id in ids]
    assert "".join(pieces) + stream.tail() == stream.text
    assert decoded(tokenizer, prefix) + stream.text == decoded(tokenizer, prefix + ids)


def test_wordpieces_come_one_by_one() -> None:
    tokenizer = TOKENIZERS["wordpiece"]
    stream = TextStream(tokenizer, Vocabulary(tokenizer), [])
    assert [stream.add(id) for id in (1, 2, 3, 4, 5)] == ["the", " cat", "s", " sat", " ."]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_padded_rows_are_named_and_write_nothing(kind: str) -> None:
    tokenizer = TOKENIZERS[kind]
    vocabulary, padded = Vocabulary(tokenizer, len(tokenizer) + 8), len(tokenizer) + 7
    token = vocabulary.token(padded)
    assert (token.text, token.bytes, token.special) == (f"unused id {padded}", "", True)
    stream = TextStream(tokenizer, vocabulary, [padded])
    assert stream.add(padded) == stream.tail() == ""
    assert encode_prompt(tokenizer, vocabulary, Request(prompt_ids=(1, padded))).ids == (1, padded)
    with pytest.raises(RequestError, match=f"id {padded + 1} is outside this model's vocabulary"):
        encode_prompt(tokenizer, vocabulary, Request(prompt_ids=(1, padded + 1)))


@pytest.mark.parametrize("error", [IndexError, KeyError])
def test_tokenizers_that_raise_for_a_padded_row(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those written in Python look a piece up in a list or a dictionary."""
    tokenizer = byte_level_tokenizer()

    def lookup(id: int) -> str:
        raise error(id)

    monkeypatch.setattr(tokenizer, "convert_ids_to_tokens", lookup)
    assert Vocabulary(tokenizer).token(9_999).text == "unused id 9999"


@pytest.mark.parametrize("prompt", ["assistant", "user", "a", "<|assistant|>", " padded "])
def test_your_words_are_found_though_the_template_holds_them_too(tokenizer: Any, prompt: str) -> None:
    encoded = encode_prompt(tokenizer, Vocabulary(tokenizer), Request(prompt, system="user a"))
    mine = [i for i, own in enumerate(encoded.own) if own]
    assert "".join(encoded.tokens[i].text for i in mine) == prompt
    assert mine == list(range(mine[0], mine[-1] + 1))
    assert [t.text for t in encoded.tokens[mine[-1] + 1 :]] == ["</s>", "<|assistant|>"]
