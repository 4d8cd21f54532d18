"""The folder of a Space: what is in it, that its versions are the tested ones, and that it starts."""

import os
import re
import socket
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from tests.fresh import fresh_environment

ROOT = Path(__file__).resolve().parents[2]
ASSEMBLE = ROOT / "spaces" / "assemble.py"


def pinned(text: str) -> dict[str, str]:
    lines = (line.partition("==") for line in text.splitlines() if line and not line.startswith("#"))
    return {name.lower().replace("_", "-"): version for name, _, version in lines}


CONSTRAINTS = pinned((ROOT / "constraints.txt").read_text())


def assembled(folder: Path, *arguments: str) -> Path:
    subprocess.run([sys.executable, str(ASSEMBLE), str(folder), *arguments], check=True, cwd=folder.parent)
    return folder


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


def test_front_matter_names_the_tested_versions(space: Path) -> None:
    _, front, body = (space / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["sdk"] == "gradio"
    assert card["sdk_version"] == CONSTRAINTS["gradio"]
    assert card["python_version"] == "3.12"
    assert (space / card["app_file"]).is_file()
    assert card["license"] == "apache-2.0"
    assert len(card["short_description"]) <= 60  # the Hub refuses longer ones
    assert card["models"] == ["HuggingFaceTB/SmolLM2-135M-Instruct"]
    assert body.strip()


def test_requirements_are_the_tested_versions_without_what_the_platform_brings(space: Path) -> None:
    wanted = pinned((space / "requirements.txt").read_text())
    assert wanted.items() <= CONSTRAINTS.items()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {re.match(r"[\w-]+", line)[0].lower().replace("_", "-") for line in project["dependencies"]}  # type: ignore[index]
    assert wanted.keys() == needed - {"gradio"}


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


@pytest.mark.slow
@pytest.mark.parametrize("space_id", ["", "someone/first-token"])
def test_it_installs_fresh_and_starts(space: Path, tmp_path: Path, space_id: str) -> None:
    """As the platform does it: requirements first, then `python app.py` in the folder."""
    python = fresh_environment(tmp_path / "venv")
    install = [str(python), "-m", "pip", "install", "--no-index", "--quiet", "-r", "requirements.txt"]
    subprocess.run(install, cwd=space, check=True, timeout=300)
    port = free_port()
    environment = {
        **os.environ, "FIRST_TOKEN_HOST": "127.0.0.1", "FIRST_TOKEN_PORT": str(port), "SPACE_ID": space_id,
        "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [str(python), "app.py"], cwd=space, env=environment, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        body = opened(f"http://127.0.0.1:{port}/", process, log)
    finally:
        process.terminate()
        process.wait(timeout=20)
    assert "First Token" in body


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def opened(address: str, process: "subprocess.Popen[bytes]", log: Path) -> str:
    """The page's text as soon as it answers with 200; fails with the log if the process ends."""
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                assert answer.status == 200
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.3)
    raise AssertionError(f"no answer within 90 s: {log.read_text()}")
