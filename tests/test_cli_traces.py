"""`export` and `gallery`: files for people from traces, on a machine without torch."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from playground.cli import run as run_command
from playground.core.trace import load_trace
from playground.settings import assets_dir
from playground.views.entries import SHIPPED

TRACES = assets_dir() / "traces"


@pytest.fixture
def said(capfd: pytest.CaptureFixture[str]) -> Any:
    """`said(*arguments)`: the exit code and what was written to stderr."""

    def run(*arguments: object) -> tuple[int, str]:
        code = run_command([str(argument) for argument in arguments])
        return code, capfd.readouterr().err

    return run


def test_a_trace_becomes_a_page_a_table_and_a_trace(said: Any, tmp_path: Path) -> None:
    source = TRACES / "playground.jsonl"
    for kind in ("html", "csv", "jsonl"):
        assert said("export", source, tmp_path / f"run.{kind}")[0] == 0
    steps = load_trace(source).runs[0].lanes[0].steps
    with (tmp_path / "run.csv").open(newline="") as file:
        assert [int(row["id"]) for row in csv.DictReader(file)] == [step.token.id for step in steps]
    assert load_trace(tmp_path / "run.jsonl") == load_trace(source)
    assert "Two sentences about gravity" in (tmp_path / "run.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["run.pdf"], 2, "must end in .html, .csv or .jsonl"),
        (["run.html", "--language", "tlh"], 2, "--language must be one of en, zh"),
        (["missing/run.html"], 1, "No such file"),
    ],
)
def test_a_wish_that_cannot_be_met_is_a_sentence(
    said: Any, tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    out, *options = arguments
    answer = said("export", TRACES / "playground.jsonl", tmp_path / out, *options)
    assert answer[0] == code
    assert sentence in answer[1]
    assert answer[1].count("\n") == 1


def test_a_gallery_of_the_shipped_traces_has_a_page_for_each(said: Any, tmp_path: Path) -> None:
    code, err = said("gallery", "--into", tmp_path / "site", "--language", "zh")
    assert (code, f"{len(SHIPPED)} traces" in err) == (0, True)
    index = (tmp_path / "site" / "index.html").read_text()
    assert 'lang="zh-CN"' in index
    for name in SHIPPED:
        assert f'href="{name}.html"' in index
        assert (tmp_path / "site" / f"{name}.html").stat().st_size < 900_000


def test_names_do_not_collide_and_broken_files_are_named(said: Any, tmp_path: Path) -> None:
    text = (TRACES / "playground.jsonl").read_text()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "../x y.jsonl").resolve().write_text("{}")
        (tmp_path / folder / "index.jsonl").write_text(text)
    files = [tmp_path / "a" / "index.jsonl", tmp_path / "b" / "index.jsonl", tmp_path / "x y.jsonl"]
    code, err = said("gallery", *files, "--into", tmp_path / "site")
    assert code == 0
    assert "x y.jsonl is left out: This file does not begin like a First Token trace" in err
    assert sorted(path.name for path in (tmp_path / "site").iterdir()) == [
        "index-2.html", "index-3.html", "index.html",
    ]  # fmt: skip


def test_a_gallery_of_nothing_is_refused(said: Any, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}")
    code, err = said("gallery", tmp_path / "x.jsonl", "--into", tmp_path / "site")
    assert code == 1
    assert "there is no gallery" in err
    assert not (tmp_path / "site" / "index.html").exists()


def test_a_race_is_written_whole(tmp_path: Path) -> None:
    events = [json.loads(line)["event"] for line in (TRACES / "race.jsonl").read_text().splitlines()[1:]]
    assert events.count("ticked") == events.count("stepped") / 2 > 30
    assert events[-1] == "raced"


def test_runs_are_kept_in_a_folder_and_not_in_a_file(said: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, err = said("serve", "--traces", tmp_path / "file")
    assert code == 2
    assert "--traces must name a folder" in err


def test_the_folder_reaches_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from playground.ui import app

    served: list[Any] = []
    monkeypatch.setattr(app, "build", lambda *given, **named: served.append(named["saved"]))
    monkeypatch.setattr(app, "serve_until_ended", lambda *given: None)
    assert run_command(["serve", "--offline", "--traces", str(tmp_path)]) == 0
    assert served == [tmp_path]
