"""What README.md shows is so: outputs, the Python example, links, pictures, versions."""

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / ".ci"))

from readme import runs_a_model, with_outputs  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_outputs_are_those_of_the_commands() -> None:
    """`python .ci/readme.py` writes them anew."""
    assert with_outputs(README, lambda command: not runs_a_model(command)) == README


@pytest.mark.model
def test_outputs_of_the_model_are_those_of_the_commands() -> None:
    assert with_outputs(README, runs_a_model) == README


@pytest.mark.model
def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, default_model: Any) -> None:
    import playground.engine.load

    monkeypatch.setattr(playground.engine.load, "load_model", lambda: default_model)
    example, _ = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    *steps, text = printed.getvalue().splitlines()
    assert len(steps) == 8
    assert all(float(line.split()[-1]) >= 0 for line in steps)
    assert text.startswith("Gravity is")


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_what_is_linked_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_reading_path_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:playground|assets|tests|spaces)/[\w/.]+|app\.py)`", text)
    assert len(files) >= 10
    assert [file for file in files if not (ROOT / file).exists()] == []
