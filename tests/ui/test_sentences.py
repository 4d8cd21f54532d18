"""Refusals of core and engine are said in Chinese too; the parts that were filled in stay."""

import math
import re

import pytest

from playground.core.decoding import Decoding, InvalidSetting, parse_decoding, validated
from playground.ui.sentences import translated

CHINESE = re.compile("[\u4e00-\u9fff]")


@pytest.mark.parametrize(
    "bad",
    [
        Decoding(temperature=-1), Decoding(temperature=math.nan), Decoding(top_p=2), Decoding(top_k=-1),
        Decoding(min_p=7), Decoding(repetition_penalty=0), Decoding(max_new_tokens=0), Decoding(seed=-1),
        Decoding(strategy="beam"), Decoding(stop=("",)), Decoding(stop=("a",) * 17),
    ],
)  # fmt: skip
def test_every_setting_out_of_range(bad: Decoding) -> None:
    with pytest.raises(InvalidSetting) as raised:
        validated(bad)
    said = translated(str(raised.value), "zh")
    assert CHINESE.search(said)
    assert not re.search(r"must|is off|is greedy|allowed", said)
    assert translated(str(raised.value), "en") == str(raised.value)


@pytest.mark.parametrize("spec", ["warmth=1", "temperature=hot", "hottest"])
def test_a_spec_that_is_not_understood(spec: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        parse_decoding(spec)
    assert CHINESE.search(translated(str(raised.value), "zh"))


def test_values_stay_as_they_were() -> None:
    said = translated("The prompt has 51,231 tokens and this model reads at most 8,192; shorten it.", "zh")
    assert "51,231" in said
    assert "8,192" in said


@pytest.mark.parametrize("sentence", ["", "Something else happened.", "{name} {0}", "x" * 5000])
def test_what_is_not_known_is_left_alone(sentence: str) -> None:
    assert translated(sentence, "zh") == sentence
