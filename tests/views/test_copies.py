"""A comparison as a command, as curl and as Python: each says the same lanes, whatever was typed."""

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.cli.compare import read_lanes
from playground.core.decoding import GREEDY, Decoding, parse_decoding
from playground.views.copies import Comparison, as_command, as_curl, as_python

SPECS = ("greedy", "temperature=0.7,top_p=0.9,seed=5", 'order=llama.cpp,top_k=40,stop=" a, \\"b\\"\\n"')
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


def comparison(**changes: Any) -> Comparison:
    base = Decoding(max_new_tokens=12)
    lanes = tuple(parse_decoding(spec, base) for spec in SPECS)
    return Comparison(
        **{"prompt": "It's $HOME", "specs": SPECS, "lanes": lanes, "max_new_tokens": 12} | changes
    )


@given(TEXT, TEXT, st.booleans())
def test_the_command_reads_back_to_the_same_lanes(prompt: str, system: str, chat: bool) -> None:
    asked = comparison(prompt=prompt, system=system or None, chat=chat, model="owner/model")
    words = shlex.split(as_command(asked))
    options, typed = words, [prompt]
    if prompt == "-":
        assert words[:4] == ["printf", "%s", "-", "|"]
    else:
        at = words.index("--")
        options, typed = words[:at], words[at + 1 :]
    assert typed == [prompt]
    given = [options[i + 1] for i, word in enumerate(options) if word == "--lane"]
    assert read_lanes(given, Decoding(max_new_tokens=12))[2].stop == asked.lanes[2].stop
    assert tuple(given) == asked.specs
    assert ("--raw" in options) is not chat
    assert ("--system" in options) is bool(system)


def test_a_run_on_a_server_names_it_in_the_command() -> None:
    words = shlex.split(as_command(comparison(server="http://gpu-box:8000")))
    assert words[words.index("--server") + 1] == "http://gpu-box:8000" and "--model" not in words


@given(TEXT)
def test_curl_carries_the_arguments_of_the_endpoint(prompt: str) -> None:
    line = as_curl(comparison(prompt=prompt, chat=False), "http://127.0.0.1:7860/")
    assert line.startswith("curl -sN http://127.0.0.1:7860/gradio_api/call/compare/")
    inner = shlex.split(line[line.index("$(") + 2 : -2])
    data = json.loads(inner[inner.index("-d") + 1])["data"]
    assert data == [prompt, list(SPECS), False, None, 12, 20, None]


@given(TEXT, TEXT)
def test_the_script_is_python_whatever_was_typed(prompt: str, system: str) -> None:
    script = as_python(comparison(prompt=prompt, system=system), "models/some.gguf", "bfloat16")
    compile(script, "copied", "exec")
    assert "gguf_file='some.gguf'" in script and "MODEL = 'models'" in script
    assert "(generate does not know this order)" in script


@pytest.mark.model
def test_the_script_gives_the_ids_of_the_engine(default_model: Any) -> None:
    from dataclasses import replace

    from playground.core.request import Request
    from playground.core.run import fold
    from playground.engine.decode import stream

    lanes = tuple(replace(GREEDY, max_new_tokens=12, repetition_penalty=p) for p in (1.0, 1.3))
    run = fold(stream(default_model, Request("Name a sea.", lanes)))
    folder = str(Path(default_model.module.config._name_or_path))
    asked = Comparison("Name a sea.", ("greedy", "greedy,repetition_penalty=1.3"), lanes, 12)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(as_python(asked, folder), {})
    for lane, line in zip(run.lanes, said.getvalue().splitlines(), strict=True):
        assert str(lane.token_ids) in line
