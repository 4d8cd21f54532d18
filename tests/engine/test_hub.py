"""The Hub's cache and a fetch, against a small server that answers like the Hub."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.engine.conftest import byte_level_tokenizer, tiny_module

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODELS = {"org/tiny", "org/gated", "org/pickle"}

CLIENT = """
import json, sys
from playground.engine import hub
from playground.engine.progress import CannotLoad
said, steps = [], []
for name in json.loads(sys.argv[1]):
    try:
        said.append(["cached", str(hub.cached(name))])
        steps.clear()
        said.append(["fetched", str(hub.fetch(name, steps.append))])
        said.append(["bytes", steps[-1].done_bytes, [s.step for s in steps][0]])
        said.append(["cached", str(hub.cached(name))])
    except CannotLoad as error:
        said.append([type(error).__name__, str(error)])
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    place = tmp_path_factory.mktemp("model")
    tokenizer = byte_level_tokenizer()
    tiny_module(len(tokenizer)).save_pretrained(place)
    tokenizer.save_pretrained(place)
    wanted = {file.name: file.read_bytes() for file in place.iterdir()}
    return wanted | {"own.py": b"raise SystemExit", "pytorch_model.bin": b"pickle", "onnx/config.json": b"{}"}


@pytest.fixture(scope="module")
def server(files: dict[str, bytes]) -> Iterator[str]:
    class Answers(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            parts = self.path.split("?")[0].strip("/").split("/")
            if parts[0] == "api":
                self.send_api("/".join(parts[2:4]), parts[4:], body)
            else:
                self.send_file("/".join(parts[:2]), "/".join(parts[4:]), body)

        def send_api(self, name: str, rest: list[str], body: bool) -> None:
            if name not in MODELS:
                self.send({"error": "Repository not found"}, body, 404, {"X-Error-Code": "RepoNotFound"})
            elif rest[:1] == ["tree"]:
                self.send(
                    [{"type": "file", "path": n, "size": len(d), "oid": n} for n, d in self.of(name).items()],
                    body,
                )
            else:
                siblings = [{"rfilename": n, "size": len(d)} for n, d in self.of(name).items()]
                self.send(
                    {"id": name, "sha": COMMIT, "siblings": siblings, "gated": name == "org/gated"}, body
                )

        def of(self, name: str) -> dict[str, bytes]:
            skip = ".safetensors" if name == "org/pickle" else "\0"
            return {n: d for n, d in files.items() if skip not in n}

        def send_file(self, name: str, file: str, body: bool) -> None:
            if name == "org/gated":
                self.send({"error": "gated"}, body, 403, {"X-Error-Code": "GatedRepo"})
            else:
                etag = {"ETag": f'"{hashlib.sha1(files[file]).hexdigest()}"', "X-Repo-Commit": COMMIT}
                self.send(files[file], body, 200, etag)

        def send(
            self, value: Any, body: bool, code: int = 200, headers: dict[str, str] | None = None
        ) -> None:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(code)
            for key, text in ({"Content-Length": str(len(data))} | (headers or {})).items():
                self.send_header(key, text)
            self.end_headers()
            if body:
                self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()


def ask(names: list[str], endpoint: str, home: Path) -> list[list[Any]]:
    """What a fresh process with `endpoint` as its Hub says; the Hub's address is read at import."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "TRANSFORMERS_"))}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "NO_PROXY": "*"}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, json.dumps(names)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "nothing is printed beside the progress"
    said: list[list[Any]] = json.loads(done.stdout)
    return said


def test_a_model_is_fetched_once_without_code_and_pickles(
    server: str, files: dict[str, bytes], tmp_path: Path
) -> None:
    absent, fetched, measured, cached = ask(["org/tiny"], server, tmp_path)
    folder = Path(fetched[1])
    assert (absent, folder.name, cached[1]) == (["cached", "None"], COMMIT, fetched[1])
    wanted = {
        name for name in files if name.endswith((".json", ".safetensors", ".jinja")) and "/" not in name
    }
    assert {file.name for file in folder.iterdir()} == wanted
    assert measured[1:] == [sum(len(files[name]) for name in wanted), "hub-check"]
    (folder / "model.safetensors").unlink()
    assert ask(["org/tiny"], server, tmp_path)[0] == ["cached", "None"], "half a model is none"


def test_what_cannot_be_fetched_is_said_in_one_sentence(server: str, tmp_path: Path) -> None:
    said = [
        entry
        for entry in ask(["org/gated", "org/none", "org/pickle", "-/-"], server, tmp_path)
        if entry[0] != "cached"
    ]
    assert [entry[0] for entry in said] == ["CannotLoad"] * 4
    gated, none, pickle, impossible = (entry[1] for entry in said)
    assert "'org/gated' is gated" in gated
    assert "`hf auth login`" in gated
    assert "No model 'org/none' exists" in none
    assert "'org/pickle' has no safetensors" in pickle
    assert "No model '-/-' exists" in impossible
    assert all("nothing was changed" in entry[1] and entry[1].endswith(".") for entry in said)


def test_a_hub_that_is_not_there_is_given_up_soon(tmp_path: Path) -> None:
    said = ask(["org/tiny"], "http://127.0.0.1:9", tmp_path)
    assert said[1][0] == "Unreachable"
    assert "cannot be reached" in said[1][1]
    assert "nothing was changed" in said[1][1]
