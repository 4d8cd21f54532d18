"""The command line: help without torch, exit codes, one sentence for each error, strict JSON.

Commands that run a model are given a recorded one here; the real model is run where marked.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from playground.backends.protocol import BackendError
from playground.cli import compare as compare_module
from playground.cli import generate as generate_module
from playground.cli import run as run_command
from playground.cli import tokens as tokens_module
from playground.core.control import Control
from playground.core.decoding import Decoding
from playground.core.events import Event, Failed, Finished, Note, Prefilled, Prefilling, Started, Stepped
from playground.core.printable import one_line, visible
from playground.core.request import ModelFacts, Request
from playground.core.tokens import Candidate, Token
from playground.core.trace import load_trace

COMMANDS = [
    "serve",
    "generate",
    "compare",
    "race",
    "score",
    "tokens",
    "kv",
    "replay",
    "export",
    "gallery",
    "models",
    "doctor",
    "bench",
]
LLAMA_8B = {
    "model_type": "llama", "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 128, "hidden_size": 4096, "torch_dtype": "bfloat16",
}  # fmt: skip
FACTS = ModelFacts("tests/spoken", None, "cpu", "float32", 100, 1000, kv_bytes_per_token=10)


@dataclass
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The last line of stdout, read strictly."""

        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is not JSON")

        return json.loads(self.out.splitlines()[-1], parse_constant=refuse)


class Spoken:
    """A backend that says the same words whatever is asked; each lane leaves the first one word in."""

    def __init__(self, words: list[str], fails: bool = False, notes: tuple[Note, ...] = ()) -> None:
        self.words, self.fails, self.notes = words, fails, notes
        self.asked: Request | None = None

    def facts(self) -> ModelFacts:
        return FACTS

    def tokenize(self, prompt: str, *, chat: bool, system: str | None) -> tuple[list[Token], list[bool]]:
        return [Token(1, "<s>", "3c733e", True), Token(2, " os", "206f73"), Token(3, "[b]", "5b625d")], [
            False,
            True,
            True,
        ]

    def stream(self, request: Request, control: Control) -> Iterator[Event]:
        if not request.prompt:
            raise BackendError("The prompt is empty; type something for the model to continue.")
        request = replace(request, lanes=tuple(replace(lane, seed=lane.seed or 7) for lane in request.lanes))
        self.asked = request
        yield Started("r", request, FACTS, (Token(1, "a"),), (True,), self.notes, load_seconds=1.0)
        yield Prefilling("r", 1, 1, 0.1)
        yield Prefilled("r", 1, 0, 0.0, 0.1, 1, 10, 10)
        for step, word in enumerate(self.words):
            for lane in range(len(request.lanes)):
                token = Token(step + 100 * lane * (step > 0), word, word.encode("utf-8", "replace").hex())
                yield _stepped(lane, step, token)
        if self.fails:
            yield Failed(
                "r", None, "The next step could not be computed; every token up to here is kept.", 1.0
            )
            return
        for lane in range(len(request.lanes)):
            yield Finished("r", lane, "max_new_tokens", "".join(self.words), 1.0)


def _stepped(lane: int, step: int, token: Token) -> Stepped:
    return Stepped(
        "r", lane, step, 1 + step, token, token.text, 1, -0.5, 1.0, None, "argmax", (Candidate(token, -0.5, 1.0),),
        0.0, 1.0, 0.0, 1, 1.0, (), 0.1 * step, 0.1 * (step + 1), 1 + step, 10 * (1 + step), 10 * (1 + step), 1, step,
        kv_predicted_bytes=10 * (1 + step),
    )  # fmt: skip


@pytest.fixture
def first_token(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run a command in this process."""

    def run(*arguments: str) -> Answer:
        capsys.readouterr()
        code = run_command([str(argument) for argument in arguments])
        return Answer(code, *capsys.readouterr())

    return run


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Spoken]:
    """Make the commands run a `Spoken` backend."""

    def make(*words: str, **how: Any) -> Spoken:
        backend = Spoken(list(words), **how)
        for module in (generate_module, compare_module):
            monkeypatch.setattr(module, "chosen_backend", lambda *_, **__: backend)
        monkeypatch.setattr(tokens_module, "local_tokenizer", lambda *_: backend)
        return backend

    return make


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA_8B))
    return file


@pytest.mark.alone
def test_help_is_quick_and_imports_no_torch() -> None:
    program = (
        "import sys, time; began = time.perf_counter()\n"
        "from playground.cli import run\n"
        f"for name in [[]] + [[c] for c in {COMMANDS}]: assert run([*name, '--help']) == 0, name\n"
        "heavy = {'torch', 'gradio', 'transformers', 'plotly', 'numpy'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy), 'seconds:', time.perf_counter() - began)"
    )
    seconds, out = [], ""
    for _ in range(2):
        began = time.perf_counter()
        out = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout  # fmt: skip
        seconds.append(time.perf_counter() - began)
    assert "heavy: []" in out
    assert all(f"first-token {command}" in out for command in COMMANDS)
    assert min(seconds) < 1  # all ten helps together; the first run may compile


def test_module_and_version() -> None:
    done = subprocess.run([sys.executable, "-m", "playground", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "first-token 0.1.0\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"], ["generate"], ["generate", "a", "--nonsense"], ["generate", "a", "--temperature", "warm"],
        ["models"], ["kv"], ["kv", "llama-3-8b", "--tokens", "many"],
    ],
)  # fmt: skip
def test_wrong_use_is_one_sentence_and_2(first_token, arguments) -> None:
    answer = first_token(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--temperature", "-1"], "temperature must be a number from 0 to 100"),
        (["--temperature", "nan"], "temperature must be a number"),
        (["--temperature", "inf"], "temperature must be a number"),
        (["--top-p", "2"], "top_p must be a number from 0 to 1"),
        (["--top-k", "-1"], "top_k must be a whole number"),
        (["--max-new-tokens", "0"], "max_new_tokens must be a whole number from 1"),
        (["--seed", "-1"], "seed must be a whole number"),
        (["--strategy", "beam"], "strategy must be one of greedy, sample"),
        (["--stop", ""], "stop string must be text"),
        (["--trace", "nowhere/at/all.jsonl"], "give a file in a folder that exists"),
    ],
)
def test_a_bad_setting_is_one_sentence_before_anything_is_loaded(
    first_token, monkeypatch, arguments, sentence
) -> None:
    monkeypatch.setattr(generate_module, "chosen_backend", lambda *_, **__: pytest.fail("a model was loaded"))
    answer = first_token("generate", "a", *arguments)
    assert answer.code == 2
    assert sentence in answer.err
    assert answer.err.count("\n") == 1


def test_a_refused_request_is_one_sentence_and_2(first_token, spoken) -> None:
    spoken("x")
    answer = first_token("generate", "")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "prompt is empty" in answer.err


def test_generate_writes_text_to_stdout_and_the_story_to_stderr(first_token, spoken) -> None:
    spoken(" Paris", ".", notes=(Note("lone_space", "The prompt ends with a space."),))
    answer = first_token("generate", "The capital of France is")
    assert (answer.code, answer.out) == (0, " Paris.\n")
    assert answer.err.startswith("1 token read in 100 ms, then 1 more, one every 100 ms.")
    assert "KV cache of 2 tokens: 20 B measured, as predicted" in answer.err
    assert "Note: The prompt ends with a space." in answer.err


def test_generate_json_is_the_last_and_only_line(first_token, spoken) -> None:
    spoken(" Paris", ".")
    answer = first_token("generate", "a", "--json", "--seed", "5")
    assert answer.out.count("\n") == 1
    assert {
        "text", "prompt_token_ids", "token_ids", "finish_reason", "seed", "settings", "timing", "kv_cache", "steps",
    } <= answer.json.keys()  # fmt: skip
    assert answer.json["text"] == " Paris."
    assert answer.json["token_ids"] == [0, 1]
    assert answer.json["seed"] == 5


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], Decoding(strategy="greedy", temperature=0.0, top_p=1.0)),
        (["--strategy", "sample"], Decoding()),
        (["--temperature", "0.5"], Decoding(temperature=0.5)),
        (["--top-k", "5"], Decoding(top_k=5)),
        (["--strategy", "greedy", "--stop", "a", "--stop", "b"],
         Decoding(strategy="greedy", temperature=0.0, top_p=1.0, stop=("a", "b"))),
    ],
)  # fmt: skip
def test_a_sampling_option_means_sampling(first_token, spoken, arguments, expected) -> None:
    backend = spoken("x")
    assert first_token("generate", "a", "--seed", "3", *arguments).code == 0
    assert backend.asked.lanes == (replace(expected, seed=3),)


def test_a_failure_keeps_what_was_made_and_is_1(first_token, spoken, tmp_path) -> None:
    spoken(" Paris", fails=True)
    answer = first_token("generate", "a", "--json", "--trace", tmp_path / "run.jsonl")
    assert answer.code == 1
    assert answer.json["text"] == " Paris"
    assert answer.json["finish_reason"] == "error"
    assert answer.err.count("could not be computed") == 1
    assert load_trace(tmp_path / "run.jsonl").runs[0].lanes[0].token_ids == [0]


@pytest.mark.parametrize(
    "command", [["generate"], ["compare", "--lane", "greedy", "--lane", "temperature=1"]]
)
def test_a_run_that_never_began_is_json_too(first_token, spoken, monkeypatch, command) -> None:
    def broken(self: Spoken, request: Request, control: Control) -> Iterator[Event]:
        yield Failed("r", None, "The server is gone; start it again.", 0.0)

    spoken()
    monkeypatch.setattr(Spoken, "stream", broken)
    answer = first_token(*command, "x", "--json")
    assert (answer.code, answer.json) == (1, {"error": "The server is gone; start it again."})


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert visible("a\x1b[31m\x07\u202e\ud800\r\n\tb") == "a\\x1b[31m\\x07\\u202e\\ud800\\x0d\n\tb"
    assert visible("聪 👩‍🔬 a\u00a0b\u3000c") == "聪 👩‍🔬 a\u00a0b\u3000c"
    assert one_line("a\nb\t\x9b") == "a\\x0ab\\x09\\x9b"


def test_compare_marks_where_lanes_part(first_token, spoken) -> None:
    spoken(" a", " b")
    answer = first_token(
        "compare", "x", "--lane", "greedy", "--lane", "temperature=0.8,top_p=0.9,seed=1", "--json"
    )
    assert answer.code == 0
    assert answer.json["first_divergence"] == 1
    assert [lane["spec"] for lane in answer.json["lanes"]] == ["greedy", "temperature=0.8,top_p=0.9,seed=1"]
    assert answer.json["lanes"][1]["seed"] == 1
    assert "The lanes first part at token 2." in answer.err
    assert "B: T 0.8, top-p 0.9 · seed 1 · 2 tokens" in answer.err


@pytest.mark.parametrize(
    "lanes", [[], ["greedy"], ["greedy", "warm"], ["greedy", "temperature=-1"], ["greedy", "x=1"]]
)
def test_compare_refuses_lanes_in_one_sentence(first_token, spoken, lanes) -> None:
    spoken(" a")
    answer = first_token("compare", "x", *(part for lane in lanes for part in ("--lane", lane)))
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_compare_draws_one_lane_many_times_and_counts_the_continuations(
    first_token, spoken, tmp_path
) -> None:
    spoken(" a", " b")
    file = tmp_path / "draws.jsonl"
    asked = ("compare", "x", "--lane", "temperature=0.8,seed=40", "--draws", "4")
    answer = first_token(*asked, "--json", "--trace", file)
    assert answer.code == 0 and answer.json["draws"] == 4
    assert [lane["seed"] for lane in answer.json["lanes"]] == [40, 41, 42, 43]
    tree = answer.json["tree"]
    assert (tree["count"], tree["share"], tree["text"]) == (4, 1.0, " a")
    assert [(child["count"], child["share"], child["lanes"]) for child in tree["children"]] == [
        (1, 0.25, [lane]) for lane in range(4)
    ]
    (again,) = load_trace(file).runs
    assert len(again.lanes) == 4
    shown = first_token(*asked)
    assert "1 of 4 25.0%" in shown.out
    assert "4 draws, 4 different continuations; all share the first token." in shown.err
    assert first_token("replay", file).code == 0


@pytest.mark.parametrize(
    "asked",
    [
        ("--draws", "4"),
        ("--lane", "greedy", "--draws", "4"),
        ("--lane", "temperature=1", "--draws", "65"),
        ("--lane", "temperature=1", "--draws", "1"),
        ("--lane", "temperature=1", "--lane", "temperature=2", "--draws", "4"),
    ],
)
def test_draws_are_refused_in_one_sentence(first_token, spoken, asked) -> None:
    spoken(" a")
    answer = first_token("compare", "x", *asked)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_tokens(first_token, spoken) -> None:
    spoken()
    answer = first_token("tokens", "x")
    assert "·os" in answer.out
    assert "[b]" in answer.out
    assert "<s> (special)" in answer.out
    assert "3 tokens, 1 of them added by the tokenizer." in answer.err
    assert first_token("tokens", "x", "--json").json == {
        "tokens": [
            {"id": 1, "text": "<s>", "bytes": "3c733e", "special": True},
            {"id": 2, "text": " os", "bytes": "206f73", "special": False},
            {"id": 3, "text": "[b]", "bytes": "5b625d", "special": False},
        ]
    }


def test_replay_is_as_generate(first_token, spoken, tmp_path) -> None:
    spoken(" Paris", ".")
    file = tmp_path / "run.jsonl"
    made = first_token("generate", "a", "--json", "--trace", file).json
    assert first_token("replay", file, "--json").json == made
    shown = first_token("replay", file)
    assert shown.out == " Paris.\n"
    assert "Prompt: a" in shown.err


def test_replay_of_lanes_is_as_compare(first_token, spoken, tmp_path) -> None:
    spoken(" a", " b")
    file = tmp_path / "run.jsonl"
    made = first_token("compare", "x", "--lane", "greedy", "--lane", "seed=2", "--json", "--trace", file).json
    assert first_token("replay", file, "--json").json == made


def test_replay_refuses_in_one_sentence(first_token, tmp_path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("{}\n")
    for arguments in ([file], [tmp_path / "none.jsonl"], [tmp_path]):
        answer = first_token("replay", *arguments)
        assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)
    file.write_text('{"format": "first-token-trace", "version": 1, "requests": []}\n')
    assert first_token("replay", file).code == 1


def test_kv_of_llama_3_1_8b(first_token, config) -> None:
    """Case 34 and the issue's own figures."""
    at_4096 = first_token("kv", config, "--tokens", 4096, "--json").json
    assert at_4096["bytes_per_token"] == 131_072
    assert at_4096["used_bytes"] == at_4096["allocated_bytes"] == 512 * 2**20
    assert at_4096["layers"][0]["count"] == 32
    assert first_token("kv", config, "--tokens", 1, "--json").json["if_mha_bytes"] == 524_288
    long = first_token("kv", config, "--tokens", 128_000, "--json").json
    assert long["used_bytes"] == 16_777_216_000
    assert "15.6 GiB" in first_token("kv", config, "--tokens", 128_000).out
    assert first_token("kv", config, "--sequences", 32, "--json").json["used_bytes"] == 16 * 2**30
    config.write_text(json.dumps(LLAMA_8B | {"num_key_value_heads": 32}))
    assert first_token("kv", config, "--sequences", 32, "--json").json["used_bytes"] == 64 * 2**30


def test_kv_takes_an_explicit_head_dim(first_token, config) -> None:
    """Case 35: Qwen3-0.6B."""
    qwen = {"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "hidden_size": 1024}
    config.write_text(json.dumps(qwen | {"head_dim": 128, "dtype": "bfloat16"}))
    assert first_token("kv", config, "--json").json["bytes_per_token"] == 114_688


def test_kv_reads_a_file_that_begins_with_a_byte_order_mark(first_token, config) -> None:
    config.write_text(json.dumps(LLAMA_8B), encoding="utf-8-sig")
    assert first_token("kv", config, "--json").json["bytes_per_token"] == 131_072


def test_kv_writes_the_units_of_the_page(first_token, config) -> None:
    """Case 39: KiB, MiB and GiB, beside exact bytes."""
    out = first_token("kv", config.parent).out
    assert "128 KiB" in out
    assert "131,072 bytes" in out
    assert "512 MiB" in out
    assert " MB" not in out
    assert " GB" not in out


def test_kv_in_another_dtype(first_token, config) -> None:
    assert first_token("kv", config, "--dtype", "float32", "--json").json["bytes_per_token"] == 262_144
    assert first_token("kv", config, "--dtype", "tiny").code == 2
    assert first_token("kv", config, "--tokens", "0").code == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"num_attention_heads": "x"}', "[" * 100_000])
def test_kv_of_a_bad_config_is_one_sentence_and_1(first_token, config, text) -> None:
    config.write_text(text)
    answer = first_token("kv", config)
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)


def test_kv_imports_no_torch(config) -> None:
    program = (
        "import sys; from playground.cli import run\n"
        "run(sys.argv[1:]); print('torch' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, "kv", config], capture_output=True, text=True)
    assert done.stderr.endswith("False\n")


def test_models_list_and_remove(first_token, monkeypatch, tmp_path) -> None:
    from playground.engine import stored, wheel

    monkeypatch.setenv("FIRST_TOKEN_CACHE", str(tmp_path))
    monkeypatch.setattr(stored, "_hub_models", list)
    before = first_token("models", "list", "--json").json["models"]
    assert before[0]["default"]
    assert all(model["source"] == "missing" and model["bytes"] is None for model in before)
    folder = wheel.shelf() / wheel._FOLDER
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    here = first_token("models", "list", "--json").json["models"][0]
    assert (here["source"], here["path"], here["bytes"]) == ("converted", str(folder), 2)
    assert first_token("models", "remove", here["name"]).code == 0
    assert not folder.exists()
    gone = first_token("models", "remove", here["name"])
    assert (gone.code, gone.err.count("\n")) == (1, 1)


def test_serve_refuses_a_port_that_is_none(first_token) -> None:
    assert first_token("serve", "--port", "0").code == 2
    assert first_token("serve", "--port", "70000").code == 2


@pytest.mark.parametrize("host", ["203.0.113.7", "x" * 300])
def test_serve_refuses_an_address_of_another_machine(first_token, monkeypatch, host) -> None:
    monkeypatch.setattr("playground.ui.app.serve", lambda *_: pytest.fail("the page was served"))
    answer = first_token("serve", "--host", host)
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "no address of this machine" in answer.err


def test_a_closed_pipe_is_no_traceback() -> None:
    done = subprocess.run(
        f"{sys.executable} -m playground kv llama-3-8b --json | true", shell=True, capture_output=True, text=True
    )  # fmt: skip
    assert "Traceback" not in done.stderr


def test_a_traceback_is_for_who_asks_for_it() -> None:
    """In a process of its own: under pytest the log has a reader already."""
    program = (
        "import logging, sys\n"
        "from playground import cli\n"
        "from playground.cli import generate\n"
        "def broken(*_):\n"
        "    logging.getLogger('playground.engine.decode').error('A run broke off.')\n"
        "    raise ZeroDivisionError('no such luck')\n"
        "generate.chosen_backend = broken\n"
        "sys.exit(cli.run(sys.argv[1:]))"
    )
    done = [
        subprocess.run([sys.executable, "-c", program, *given], capture_output=True, text=True)
        for given in (["generate", "a"], ["--verbose", "generate", "a"])
    ]
    assert [one.returncode for one in done] == [1, 1]
    (sentence,) = done[0].stderr.splitlines()
    assert sentence.startswith("Error: Unexpected fault (ZeroDivisionError: no such luck)")
    assert "A run broke off." in done[1].stderr and "Traceback" in done[1].stderr
    assert done[1].stderr.splitlines()[-1] == sentence


@pytest.mark.model
def test_doctor(first_token) -> None:
    report = first_token("doctor", "--json").json
    assert report["packages"]["torch"]
    assert report["machine"]["devices"][-1]["name"] == "cpu"
    assert report["machine"]["cores"] >= 1
    assert any(model["default"] for model in report["models"])


@pytest.mark.model
def test_bad_prompts_are_one_sentence_with_the_real_model(first_token, monkeypatch, default_model) -> None:
    from playground.backends.local import LocalBackend

    monkeypatch.setattr(generate_module, "chosen_backend", lambda *_, **__: LocalBackend(default_model))
    for prompt, sentence in {
        "": "prompt is empty", "a\udcff": "half of a surrogate pair", "word " * 20_000: "8,192",
    }.items():  # fmt: skip
        answer = first_token("generate", prompt, "--raw")
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
        assert sentence in answer.err
    control = first_token("generate", "a\x00\x1b[31mb", "--raw", "--max-new-tokens", 2, "--json")
    assert (control.code, len(control.json["token_ids"])) == (0, 2)


@pytest.mark.model
def test_ctrl_c_keeps_what_was_made(tmp_path) -> None:
    """The first Ctrl-C stops after the step in hand and still prints the JSON."""
    file = tmp_path / "run.jsonl"
    command = [
        sys.executable,
        "-m",
        "playground",
        "generate",
        "Count to a thousand.",
        "--max-new-tokens",
        "2000",
    ]
    process = subprocess.Popen(
        [*command, "--trace", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "stopped" in err
    assert "Traceback" not in err
    lane = load_trace(file).runs[0].lanes[0]
    assert lane.finish_reason == "cancelled"
    assert 0 < len(lane.steps) < 2000
