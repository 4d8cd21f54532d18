"""The folder of a Space: what is in it, and that its versions are the tested ones; `test_served` starts it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from huggingface_hub import SpaceHardware

from playground.catalog import default_model
from playground.engine import hub
from tests.engine.conftest import byte_level_tokenizer, tiny_module

ROOT = Path(__file__).resolve().parents[2]
ASSEMBLE = ROOT / "spaces" / "assemble.py"
SUGGESTED = {"cpu": "cpu-basic", "gpu": "t4-small", "zero": "zero-a10g"}


def pinned(text: str) -> dict[str, str]:
    lines = (line.partition("==") for line in text.splitlines() if line and not line.startswith("#"))
    return {name.lower().replace("_", "-"): version for name, _, version in lines}


CONSTRAINTS = pinned((ROOT / "constraints.txt").read_text())


def assembled(folder: Path, *arguments: str) -> Path:
    subprocess.run([sys.executable, str(ASSEMBLE), str(folder), *arguments], check=True, cwd=folder.parent)
    return folder


def tiny_snapshot(folder: Path) -> dict[str, bytes]:
    """The files that a model of the default's kind is saved as, by name; its template within the config, as there."""
    tokenizer = byte_level_tokenizer()
    tiny_module(len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder, save_jinja_files=False)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assembled(tmp_path_factory.mktemp("made") / "space")


def test_the_folder_is_complete_and_holds_nothing_else(space: Path) -> None:
    assert {path.name for path in space.iterdir()} == {
        "app.py", "LICENSE", "README.md", "requirements.txt", "playground", "assets",
    }  # fmt: skip
    names = [path.relative_to(space).as_posix() for path in space.rglob("*")]
    assert not [
        name for name in names if "__pycache__" in name or "screenshots" in name or name.endswith(".pyc")
    ]
    assert "playground/ui/app.py" in names
    assert "assets/models.toml" in names
    large = [path for path in space.rglob("*") if path.is_file() and path.stat().st_size > 2_000_000]
    assert not large


@pytest.mark.parametrize("hardware", sorted(SUGGESTED))
def test_front_matter_is_complete_and_names_the_tested_versions(tmp_path: Path, hardware: str) -> None:
    folder = assembled(tmp_path / "space", "--hardware", hardware)
    _, front, body = (folder / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["sdk"] == "gradio"
    assert card["sdk_version"] == CONSTRAINTS["gradio"]
    assert card["python_version"] == "3.12"
    assert (folder / card["app_file"]).is_file()
    assert card["license"] == "apache-2.0"
    assert card["tags"] and all(isinstance(tag, str) for tag in card["tags"])
    assert len(card["short_description"]) <= 60  # the Hub refuses longer ones
    assert card["models"] == [default_model().hub]
    assert card["suggested_hardware"] == SUGGESTED[hardware]
    assert card["suggested_hardware"] in {kind.value for kind in SpaceHardware}
    assert body.strip()


def test_what_is_fetched_beforehand_is_the_default_model_and_all_that_it_needs(
    space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The named files, laid where the platform puts them, are a complete snapshot to the program."""
    _, front, _ = (space / "README.md").read_text().split("---\n", 2)
    (line,) = yaml.safe_load(front)["preload_from_hub"]
    name, files = line.split(" ")
    assert name == default_model().hub
    repository = tmp_path / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("0" * 40)
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    made = tiny_snapshot(tmp_path / "made")
    assert not [left for left in made if left not in files.split(",")], "a file of a model is not fetched"
    for file in files.split(","):
        (snapshot / file).write_bytes(made.get(file, b"{}"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.file_download.constants.HF_HUB_CACHE", str(tmp_path))
    assert hub.cached(name) == snapshot
    (snapshot / "model.safetensors").unlink()
    assert hub.cached(name) is None


@pytest.mark.parametrize(
    ("hardware", "brought"), [("cpu", {"gradio"}), ("gpu", {"gradio"}), ("zero", {"gradio", "torch"})]
)
def test_requirements_are_the_tested_versions_without_what_the_platform_brings(
    tmp_path: Path, hardware: str, brought: set[str]
) -> None:
    folder = assembled(tmp_path / "space", "--hardware", hardware)
    wanted = pinned((folder / "requirements.txt").read_text())
    assert wanted.items() <= CONSTRAINTS.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", line)[0].lower().replace("_", "-") for line in project["dependencies"]}  # type: ignore[index]
    assert wanted.keys() == needed - brought
    assert "spaces" not in wanted


def test_the_requirements_beside_the_script_are_those_of_a_cpu(space: Path) -> None:
    """Else: python spaces/assemble.py --refresh."""
    beside = (ROOT / "spaces" / "requirements.txt").read_text()
    assert beside == (space / "requirements.txt").read_text()


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    done = subprocess.run([sys.executable, str(ASSEMBLE), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "not empty" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_repository_never_shadows_the_package_spaces() -> None:
    """Without an __init__.py the folder is no regular package, so an installed `spaces` always wins."""
    assert not (ROOT / "spaces" / "__init__.py").exists()
    probe = "import sys; sys.path.insert(0, '.')\ntry:\n from spaces import GPU\nexcept ImportError: print('guarded')"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "guarded\n"


def test_an_installed_package_spaces_wins_over_the_folder(tmp_path: Path) -> None:
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "__init__.py").write_text("GPU = 'the real one'\n")
    probe = f"import sys; sys.path[:0] = ['.', {str(tmp_path)!r}]\nfrom spaces import GPU; print(GPU)"
    done = subprocess.run([sys.executable, "-c", probe], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "the real one\n"
