"""What a page sends about itself is believed only in its exact form."""

import json

import pytest

from playground.ui.session import Tab, read_run, read_tab, send

TOKEN = "0123456789abcdef" * 2


def test_a_tab_is_its_token_and_language() -> None:
    assert read_tab(json.dumps({"session": TOKEN, "language": "zh"})) == Tab(TOKEN, "zh")


@pytest.mark.parametrize(
    "sent",
    [None, "", 7, "null", "[]", "{", "[" * 900, json.dumps({"session": "short"}),
     json.dumps({"session": [TOKEN]}),
     json.dumps({"session": TOKEN + "0"}),
     json.dumps({"session": TOKEN.upper(), "language": ["zh"]}), "x" * 5000],
)  # fmt: skip
def test_anything_else_is_nobody_speaking_english(sent: object) -> None:
    assert read_tab(sent) == Tab("", "en")


def test_each_place_of_a_tab_keeps_its_own_run() -> None:
    assert Tab(TOKEN).key("run") != Tab(TOKEN).key("compare")


@pytest.mark.parametrize("run", [None, 5, "", "a b", "../x", "x" * 81, ["a"]])
def test_a_run_id_has_the_form_of_one(run: object) -> None:
    assert read_run({"run": run}) is None


def test_packets_are_numbered_ascii() -> None:
    first, second = (send({"error": "half \ud83d of a pair"}) for _ in range(2))
    assert json.loads(second)["seq"] > json.loads(first)["seq"]
    assert first.isascii()
    assert json.loads(first)["error"] == "half \ud83d of a pair"
