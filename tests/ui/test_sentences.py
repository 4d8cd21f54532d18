"""Refusals of core and engine are said in Chinese too; the parts that were filled in stay."""

import ast
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import playground
from playground.core.codec import _NAMES
from playground.core.decoding import Decoding, InvalidSetting, parse_decoding, validated
from playground.ui.sentences import translated

CHINESE = re.compile("[\u4e00-\u9fff]")
SHOWN = {
    "InvalidSetting", "RequestError", "BackendError", "CannotLoad", "CannotScore", "Unreachable", "UnknownShape",
    "UnknownConfig", "UnknownAccelerator", "UnknownChoice", "CannotMeasure", "BadTrace", "ServerFault",
}  # fmt: skip
"""Refusals that the page shows."""


def raised_sentences() -> Iterator[tuple[str, str]]:
    """Every sentence that the layers below refuse with, as the source has it; “7” fills the gaps."""
    root = Path(playground.__file__).parent
    files = [file for part in ("core", "engine", "backends") for file in (root / part).rglob("*.py")]
    for file in [
        *files,
        root / "catalog.py",
        *(root / "ui" / name for name in ("models.py", "config_text.py", "shelf.py")),
    ]:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in SHOWN and node.args:
                sentence = _filled(node.args[0])
                if len(sentence.replace("7", "")) > 20:  # else it is put together elsewhere: examples below
                    yield f"{file.stem}:{node.lineno}", sentence


def malformed_reasons() -> Iterator[tuple[str, str]]:
    """Every reason that a line of a trace is refused for; “7” fills the gaps."""
    root = Path(playground.__file__).parent / "core"
    for file in (root / "codec.py", root / "trace.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Malformed":
                yield f"{file.stem}:{node.lineno}", _filled(node.args[0])


def _filled(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_filled(value) for value in node.values)
    return "7"


RAISED = dict(raised_sentences())
REASONS = {place: reason for place, reason in malformed_reasons() if reason != "7 must be 7"}
TYPES = [f"stepped.stages.kept must be {name}" for name in _NAMES.values()]


def test_the_sentences_are_found() -> None:
    assert len(RAISED) > 50


@pytest.mark.parametrize("reason", [*REASONS.values(), *TYPES, "it cannot be read"])
def test_what_is_wrong_with_a_line_of_a_trace_is_chinese_throughout(reason: str) -> None:
    said = translated(f"Line 3 of the trace is not valid: {reason}; nothing was loaded.", "zh")
    assert not re.search(r"[a-z]{2,} [a-z]{2,}", said.replace("true", "").replace("false", "")), said
    assert ("stepped.stages.kept" in said) == ("stepped" in reason)


@pytest.mark.parametrize("place", RAISED)
def test_every_refusal_is_said_in_chinese(place: str) -> None:
    sentence = RAISED[place]
    said = translated(sentence, "zh")
    assert CHINESE.search(said), sentence
    assert not re.search(r"nothing was changed|must be", said)
    assert translated(sentence, "en") == sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "The prompt has 51,231 tokens and this model reads at most 8,192; shorten it.",
        "The prompt has 400,001 characters; at most 400,000 are read.",
        "The system prompt contains half of a surrogate pair, which is not text; remove it and try again.",
        "'big/model' needs about 15 GiB of memory in float32 and 2.5 GiB are free on CPU, 2 cores; nothing was "
        "changed: choose a smaller model, or --dtype bfloat16.",
        "'tiny' lacks 3 of its weights (first: lm_head.weight); nothing was changed: fetch the model again, or "
        "choose another.",
        "'tiny' has weights of another shape than its config (first: a); nothing was changed: fetch the model "
        "again, or choose another.",
        "'x' could not be loaded (No space left on device); nothing was changed, and the log has the details.",
        "Line 3 of the trace is not valid: step 5 stands where step 4 belongs; nothing was loaded.",
        "Line 3 of the trace is not valid: stepped.draw must be a number from 0 to 1; nothing was loaded.",
        "The last line of the trace is cut off; everything before it was loaded.",
        "3 events of unknown kind “teleported” were skipped.",
        "292 events of other kinds, also unknown, were skipped.",
        "Only the first 24 runs of the file were taken.",
        "x.jsonl is larger than 16 MiB; nothing was loaded.",
        "The record breaks off before the run ended; everything it holds is shown.",
    ],
)
def test_a_sentence_as_it_is_raised(sentence: str) -> None:
    said = translated(sentence, "zh")
    assert CHINESE.search(said)
    assert not re.search(r"smaller|lacks|shape|prompt|tokens|characters", said)


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
