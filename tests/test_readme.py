"""What the READMEs show is so: outputs, the Python example, links, pictures, versions; both say the same."""

import contextlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / ".ci"))

from readme import READMES, runs_a_model, with_outputs  # noqa: E402

TEXTS = {file.name: file.read_text(encoding="utf-8") for file in READMES}
ENGLISH, CHINESE = TEXTS["README.md"], TEXTS["README.zh-CN.md"]
DOCUMENTS = [*TEXTS, "CONTRIBUTING.md", "CHANGELOG.md"]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", TEXTS)
def test_outputs_are_those_of_the_commands(name: str) -> None:
    """`python .ci/readme.py` writes them anew."""
    assert with_outputs(TEXTS[name], lambda command: not runs_a_model(command)) == TEXTS[name]


@pytest.mark.model
@pytest.mark.parametrize("name", TEXTS)
def test_outputs_of_the_model_are_those_of_the_commands(name: str) -> None:
    assert with_outputs(TEXTS[name], runs_a_model) == TEXTS[name]


def test_both_have_the_same_headings_and_commands() -> None:
    outlines = [re.findall(r"^#+ ", FENCE.sub("", text), re.MULTILINE) for text in TEXTS.values()]
    assert outlines[0] == outlines[1]
    assert len(outlines[0]) > 10
    english, chinese = (
        [(kind, body) for kind, body in FENCE.findall(text) if kind != "mermaid"]
        for text in (ENGLISH, CHINESE)
    )
    assert english == chinese


def test_both_have_the_same_figures_tables_and_targets() -> None:
    def targets(text: str) -> list[str]:
        return sorted(set(re.findall(r'(?:\]\(|srcset="|src=")([^)"]+)', text)) - set(TEXTS))

    def arrows(text: str) -> list[str]:
        (figure,) = (body for kind, body in FENCE.findall(text) if kind == "mermaid")
        return re.sub(r'"[^"]*"', "", figure).splitlines()

    assert targets(ENGLISH) == targets(CHINESE)
    assert arrows(ENGLISH) == arrows(CHINESE)
    assert ENGLISH.count("\n|") == CHINESE.count("\n|")


def test_the_chinese_one_is_chinese_and_uses_the_terms_of_the_page() -> None:
    from tests.ui.test_text import VARIANTS

    prose = re.sub(r"`[^`]*`|\]\([^)]*\)|<[^>]*>", "", FENCE.sub("", CHINESE))
    assert len(re.findall("[\u4e00-\u9fff]", prose)) > 2000
    assert [variant for variant in VARIANTS if variant in prose and not variant.isascii()] == []


@pytest.mark.model
def test_the_python_example_runs(monkeypatch: pytest.MonkeyPatch, default_model: Any) -> None:
    import playground.engine.load

    monkeypatch.setattr(playground.engine.load, "load_model", lambda: default_model)
    example, _ = re.findall(r"```python\n(.*?)```", ENGLISH, re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    *steps, text = printed.getvalue().splitlines()
    assert len(steps) == 8
    assert all(float(line.split()[-1]) >= 0 for line in steps)
    assert text.startswith("Gravity is")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_is_linked_exists(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = re.findall(r'(?:\]\(|srcset="|src=")([^)#"]+)', text)
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_that_are_named_exist(document: str) -> None:
    from typer.main import get_command

    from playground.cli import app

    known = get_command(app).commands  # type: ignore[attr-defined]
    text = (ROOT / document).read_text(encoding="utf-8")
    code = [body for _, body in FENCE.findall(text)] + re.findall(r"`([^`]+)`", FENCE.sub("", text))
    named = {name for part in code for name in re.findall(r"first-token ([a-z]+)", part)}
    assert named <= set(known)


def test_the_reading_path_names_files_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:playground|assets|tests|spaces)/[\w/.]+|app\.py)`", text)
    assert len(files) >= 10
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_the_changelog_has_the_version_that_is_built() -> None:
    import playground

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## {playground.__version__}" in text
