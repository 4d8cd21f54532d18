"""Uploading a Space: what is asked of the Hub, checked against the signatures of its real client."""

import importlib.util
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec

import pytest
from huggingface_hub import HfApi

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def assembling() -> Any:
    spec = importlib.util.spec_from_file_location("assembling", ROOT / "spaces" / "assemble.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Refuses every call that the real client would not take."""
    monkeypatch.setattr("huggingface_hub.get_token", lambda: "hf_secret")
    return create_autospec(HfApi, instance=True)


@pytest.mark.parametrize(("hardware", "asked"), [("cpu", "cpu-basic"), ("zero", "zero-a10g"), ("gpu", None)])
def test_the_space_is_created_and_gets_the_assembled_folder(
    assembling: Any,
    hub: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    hardware: str,
    asked: str | None,
) -> None:
    folder = tmp_path / "space"
    assert assembling.main([str(folder), "--hardware", hardware, "--upload", "someone/first-token"], hub) == 0
    (created,) = hub.create_repo.call_args_list
    assert created.args == ("someone/first-token",)
    assert created.kwargs["repo_type"] == "space" and created.kwargs["space_sdk"] == "gradio"
    assert created.kwargs["exist_ok"] and created.kwargs.get("space_hardware") == asked
    (uploaded,) = hub.upload_folder.call_args_list
    assert uploaded.kwargs["folder_path"] == folder and uploaded.kwargs["repo_id"] == "someone/first-token"
    assert uploaded.kwargs["repo_type"] == "space"
    assert (folder / "app.py").is_file() and not (folder / "spaces").exists()
    said = capsys.readouterr().out
    assert "spaces/someone/first-token" in said and "hf_secret" not in said
    assert ("costs money" in said) == (hardware == "gpu")


def test_a_refusal_of_the_hub_is_a_sentence_without_the_token(
    assembling: Any, hub: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.create_repo.side_effect = RuntimeError("403 for hf_secret\nmore")
    assert assembling.main([str(tmp_path / "space"), "--upload", "someone/first-token"], hub) == 1
    said = capsys.readouterr().err
    assert "403 for …" in said and "is complete" in said and "hf_secret" not in said and "more" not in said
    assert (tmp_path / "space" / "app.py").is_file()
    assert not hub.upload_folder.called


@pytest.mark.parametrize("name", ["someone", "a/b/c", "/x", "some one/x", "../x/y"])
def test_a_wrong_name_writes_and_asks_nothing(
    assembling: Any, hub: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert assembling.main([str(tmp_path / "space"), "--upload", name], hub) == 1
    assert "OWNER/NAME" in capsys.readouterr().err
    assert not (tmp_path / "space").exists() and not hub.mock_calls


def test_without_a_token_nothing_is_written(
    assembling: Any,
    hub: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    assert assembling.main([str(tmp_path / "space"), "--upload", "someone/first-token"], hub) == 1
    assert "HF_TOKEN" in capsys.readouterr().err
    assert not (tmp_path / "space").exists() and not hub.mock_calls


def test_only_an_assembled_folder_is_uploaded(assembling: Any, hub: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    checkout = tmp_path / "checkout"
    (checkout / "spaces").mkdir(parents=True)
    (checkout / "app.py").write_text("")
    for folder in (tmp_path / "mine", checkout):
        with pytest.raises(assembling.Refused, match="no assembled Space"):
            assembling.upload(folder, "someone/first-token", "cpu", hub)
    assert not hub.mock_calls
