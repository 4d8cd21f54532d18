"""From what the controls hold to settings, and to the spec that Compare reads."""

import math

import pytest

from playground.core.decoding import Decoding, InvalidSetting, parse_decoding, validated
from playground.core.stages import ORDERS
from playground.ui import presets
from playground.ui.controls import DEFAULTS, fields_of, read_decoding
from playground.ui.sentences import translated

VALUES = ["sample", 0.7, 0, 0.9, 0.0, 1.0, 1.0, "", 64, "", "transformers", "all"]


def changed(index: int, value: object) -> list[object]:
    return [value if i == index else old for i, old in enumerate(VALUES)]


def test_untouched_controls_are_the_defaults() -> None:
    assert read_decoding(VALUES) == DEFAULTS == Decoding()


def test_seed_and_stop_strings() -> None:
    values = changed(7, " 42 ")
    values[9] = "\\n\\n\nfox"
    decoding = read_decoding(values)
    assert decoding.seed == 42
    assert decoding.stop == ("\n\n", "fox")


@pytest.mark.parametrize("index", [2, 7, 8])
@pytest.mark.parametrize("value", ["many", "1.5", 2.5, True, "1e400", math.nan, math.inf])
def test_whole_numbers_are_asked_for_in_a_sentence(index: int, value: object) -> None:
    with pytest.raises(InvalidSetting, match="must be a whole number"):
        read_decoding(changed(index, value))


def test_the_sentence_is_in_the_language_of_the_page() -> None:
    with pytest.raises(InvalidSetting, match="必须是整数"):
        read_decoding(changed(7, "many"), "zh")


@pytest.mark.parametrize(
    ("index", "value"),
    [
        (1, -1),
        (1, math.nan),
        (1, None),
        (1, "hot"),
        (2, -1),
        (3, 2),
        (4, -0.1),
        (5, 0),
        (6, 2),
        (8, 0),
        (0, "beams"),
        (10, "heat"),
        (10, None),
        (11, "prompt"),
    ],
)
def test_out_of_range_is_refused_before_a_run(index: int, value: object) -> None:
    with pytest.raises(InvalidSetting):
        validated(read_decoding(changed(index, value)))


@pytest.mark.parametrize("name", list(presets.samplings()))
def test_a_preset_survives_its_spec(name: str) -> None:
    decoding = presets.samplings()[name]
    assert parse_decoding(presets.spec_of(decoding)) == decoding


@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(temperature=1.25, top_k=40, top_p=0.8, min_p=0.1, repetition_penalty=1.2, seed=3),
        Decoding(temperature=0.123456789, top_p=1 / 3, min_p=1e-9, typical_p=0.2, penalty_scope="output"),
        Decoding(temperature=1, top_p=1.0, seed=2**40, repetition_penalty=1.0000001),
        Decoding(stop=("END", " a, b ", "\n\n", 'say "x"', "back\\slash", "greedy", "聪", "\ud800", "a=b")),
        Decoding(top_k=5, order=ORDERS["llama.cpp"]),
        Decoding(top_k=5, order=("top_p", "temperature", "top_k")),
        Decoding(strategy="greedy", temperature=0.0, top_p=1.0, stop=(",",), repetition_penalty=1.12345678),
    ],
)
def test_spec_keeps_what_is_set(decoding: Decoding) -> None:
    assert parse_decoding(presets.spec_of(decoding)) == decoding


def test_a_greedy_spec_leaves_out_what_does_not_act() -> None:
    assert presets.spec_of(Decoding(strategy="greedy", top_k=5, seed=9)) == "greedy"


def test_the_controls_can_say_again_what_was_asked() -> None:
    asked = Decoding(
        strategy="sample", temperature=0.85, top_k=7, top_p=0.6, min_p=0.02, repetition_penalty=1.15,
        seed=9, max_new_tokens=33, stop=("own fox", "a\n\nb\t"), typical_p=0.4, penalty_scope="output",
        order=ORDERS["llama.cpp"],
    )  # fmt: skip
    assert read_decoding(fields_of(asked)) == asked
    assert read_decoding(fields_of(Decoding())) == Decoding()


def test_the_order_that_acts_is_the_one_that_is_chosen() -> None:
    assert read_decoding(changed(10, "llama.cpp")).active_stages() == ("top_p", "temperature")
    assert read_decoding(VALUES).active_stages() == ("temperature", "top_p")


@pytest.mark.parametrize("order", [("heat",), ("top_p", "top_p"), ("top_p",)])
def test_a_refused_order_is_said_in_chinese(order: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        validated(Decoding(order=order))
    assert translated(str(refusal.value), "zh") != str(refusal.value)
