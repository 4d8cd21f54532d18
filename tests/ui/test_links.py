"""Links: what an address asks for is filled in, bounded and checked; nothing of it starts a run or loads a model."""

from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.core.decoding import Decoding, parse_decoding, validated
from playground.settings import from_environment
from playground.ui import presets
from playground.ui.controls import FIELDS, fields_of, read_decoding
from playground.ui.lanes import LANES
from playground.ui.links import (
    CHARACTERS_LIMIT,
    BrokenLink,
    about_model,
    fill_compare,
    fill_playground,
    offered,
    read_link,
    sentence,
)

DECODING = Decoding(
    temperature=0.85, top_k=7, top_p=0.6, min_p=0.02, typical_p=0.4, repetition_penalty=1.15, seed=9,
    max_new_tokens=33, stop=("own fox", "a\n\nb\t"), penalty_scope="output",
)  # fmt: skip


def link(*lanes: str, **asked: Any) -> str:
    pairs = [("first-token", "1"), *asked.items(), *(("lane", lane) for lane in lanes)]
    return urlencode(pairs)


def settings(decoding: Decoding) -> dict[str, Any]:
    return dict(zip(FIELDS, fields_of(decoding), strict=True))


def test_prompt_mode_and_every_setting_come_back() -> None:
    asked = read_link(link(prompt="a&b=c#d\n“聪” שלום", mode="raw", system="Be brief.", **settings(DECODING)))
    filled = fill_playground(asked)
    prompt, mode, system, *values = filled.values
    assert (prompt, mode, system) == ("a&b=c#d\n“聪” שלום", "raw", "Be brief.")
    assert read_decoding(values) == DECODING
    assert filled.refused == []


@pytest.mark.parametrize("name", list(presets.samplings()))
def test_every_preset_survives_a_link(name: str) -> None:
    decoding = presets.samplings()[name]
    _, _, _, *values = fill_playground(read_link(link(**settings(decoding)))).values
    assert read_decoding(values) == decoding


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "hot"), ("temperature", "nan"), ("temperature", "-1"), ("temperature", "99"),
        ("temperature", "1e400"), ("top_k", "1.5"), ("top_k", "300"), ("top_p", "2"), ("seed", "many"),
        ("seed", "9" * 5000), ("max_new_tokens", "0"), ("max_new_tokens", "1e9"), ("strategy", "beam"),
        ("strategy", "<b>"), ("order", "top_p:temperature"), ("order", "heat"), ("penalty_scope", "prompt"),
        ("repetition_penalty", "50"), ("stop", "\n".join("abcdefghijklmnopqrstuvwxyz")),
    ],
)  # fmt: skip
def test_a_setting_that_no_control_takes_is_left_out_and_named(name: str, value: str) -> None:
    asked = settings(Decoding(seed=3)) | {name: value}
    filled = fill_playground(read_link(link(**asked)))
    assert filled.refused == [f"controls.{name}"]
    left = read_decoding(filled.values[3:])
    assert validated(left) == left
    assert getattr(left, name) == getattr(Decoding(seed=None if name == "seed" else 3), name)


def test_a_mode_that_is_none_is_named() -> None:
    filled = fill_playground(read_link(link(mode="<script>")))
    assert (filled.values[1], filled.refused) == ("chat", ["playground.mode"])


@given(st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=40)))
def test_whatever_a_link_holds_the_controls_can_be_run(asked: dict[str, str]) -> None:
    text = urlencode([("first-token", "1"), *asked.items()], errors="replace")
    _, _, _, *values = fill_playground(read_link(text)).values
    assert validated(read_decoding(values))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "broken"), (7, "broken"), ("", "broken"), ("prompt=x", "broken"), ("first-token=x", "broken"),
        ("first-token=2&prompt=x", "newer"), ("first-token=1&tab=kv", "broken"),
        ("first-token=1&" + "&".join(f"a{n}=1" for n in range(100)), "broken"),
        ("first-token=1&prompt=" + "x" * CHARACTERS_LIMIT, "broken"),
    ],
)  # fmt: skip
def test_what_is_no_link_of_this_version_changes_nothing(text: Any, why: str) -> None:
    with pytest.raises(BrokenLink, match=f"links.{why}"):
        read_link(text)


def test_the_runs_of_a_comparison_come_back() -> None:
    specs = ("greedy", "temperature=1.4,top_p=1,seed=5", "temperature=0.31,top_p=0.9")
    asked = read_link(link(*specs, tab="compare", prompt="Hello", mode="raw", max_new_tokens="12"))
    prompt, mode, system, count, shown, *rest = fill_compare(asked).values
    assert (prompt, mode, system, count) == ("Hello", "raw", "", 12)
    assert shown == [True, True, True, False]
    assert rest[:3] == ["greedy", "wild", "own"]
    assert tuple(rest[len(LANES) :][:3]) == specs


@pytest.mark.parametrize("lanes", [(), ("greedy",), ("temperature=hot", "greedy"), ("greedy",) * 9])
def test_a_comparison_has_two_to_four_runs_whatever_is_asked(lanes: tuple[str, ...]) -> None:
    filled = fill_compare(read_link(link(*lanes, tab="compare", max_new_tokens="many")))
    assert 2 <= sum(filled.values[4]) <= len(LANES)
    assert "controls.max_new_tokens" in filled.refused
    assert ("links.a_run" in filled.refused) == ("temperature=hot" in lanes)
    assert ("links.more_runs" in filled.refused) == (len(lanes) > len(LANES))


def test_a_run_is_called_by_a_preset_only_if_it_is_that_preset() -> None:
    assert presets.preset_of("greedy") == "greedy"
    balanced = presets.spec_of(presets.samplings()["balanced"])
    assert presets.preset_of(balanced + ",seed=77") == "balanced"
    assert presets.preset_of(balanced + ",top_k=3") == "own"
    assert parse_decoding(balanced).seed is None


class Backed:
    def __init__(self, revision: str | None) -> None:
        self.revision = revision

    def facts(self) -> Any:
        return self


class Shelf:
    """Models of a page: one is loaded, one is only offered."""

    default = "owner/there"
    offered = ("owner/there", "owner/later", "/home/me/models/own")

    def loaded(self, name: str) -> Any:
        return Backed("r1") if name == self.default else None


SHELF: Any = Shelf()


def test_only_a_model_of_the_list_is_picked() -> None:
    assert offered(SHELF, "owner/later") == "owner/later"
    assert offered(SHELF, "own") == "/home/me/models/own"
    assert offered(SHELF, "owner/elsewhere") is None
    assert offered(SHELF, "/etc/passwd") is None


@pytest.mark.parametrize(
    ("asked", "picked", "said"),
    [
        ({}, None, ""),
        ({"model": "owner/there", "revision": "r1"}, "owner/there", ""),
        ({"model": "owner/there", "revision": "r0"}, "owner/there", "revision r0"),
        ({"model": "owner/later"}, "owner/later", "when you press Generate"),
        ({"model": "someone/other"}, None, "does not have: there answers"),
        ({"model": "x" * 5000}, None, "does not have"),
    ],
)
def test_the_difference_of_models_is_said(asked: dict[str, str], picked: str | None, said: str) -> None:
    found, told = about_model(read_link(link(**asked)), SHELF, "owner/there", "en")
    assert found == picked
    assert (said in told) if said else told == ""
    assert len(told) < 400


@pytest.mark.parametrize("name", ["\u202elive", "a\nb\x00\x1b[31m", "\u2066" * 90, "x/\u200f"])
def test_a_name_that_turns_a_sentence_about_is_shown_by_its_escapes(name: str) -> None:
    _, told = about_model(read_link(link(model=name)), SHELF, None, "zh")
    assert told.isprintable()
    assert "\\" in told


@pytest.mark.parametrize("name", ["/", "\\", "///", ""])
def test_a_name_that_is_nothing_is_not_spoken_of(name: str) -> None:
    assert about_model(read_link(link(model=name)), SHELF, None, "en") == (None, "")


def test_of_a_key_that_comes_twice_the_last_counts_and_a_zero_has_no_sign() -> None:
    text = "first-token=1&temperature=9&temperature=-0&prompt=a&prompt=%zz%ff"
    filled = fill_playground(read_link(text))
    assert (filled.values[0], filled.refused) == ("%zz\ufffd", [])
    assert str(read_decoding(filled.values[3:]).temperature) == "0.0"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_line_says_what_was_and_what_was_not_restored(language: str) -> None:
    whole = sentence(fill_playground(read_link(link(prompt="x"))), "", language)
    part = sentence(fill_playground(read_link(link(top_p="9", mode="?"))), "", language)
    assert whole != part
    assert "top-p" in part.lower()


def test_a_space_names_its_outer_address() -> None:
    found = from_environment({"SPACE_ID": "someone/space"})
    assert found.space_address == "https://huggingface.co/spaces/someone/space"
    assert from_environment({}).space_address is None
    assert from_environment({"SPACE_ID": '"><script>'}).space_address is None


def test_half_a_surrogate_pair_in_a_link_reaches_no_control() -> None:
    assert read_link("first-token=1&prompt=a\ud800").get("prompt") == "a\ufffd"
