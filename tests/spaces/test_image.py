"""What the Dockerfile promises, carried out without Docker: its copies, its start, its health check.

Knows as much of a Dockerfile as ours uses. Installing the packages and the user stay unproven here.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.spaces.conftest import Space, opened

ROOT = Path(__file__).resolve().parents[2]


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) in order, continued lines joined and comments left out."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if line.strip() and not line.startswith("#"))
    found = (line.partition(" ") for line in text.replace("\\\n", " ").splitlines())
    return [(name, rest.strip()) for name, _, rest in found]


def given(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def sent_to_docker(folder: Path) -> Path:
    """The build context: the checkout's own files that .dockerignore lets pass; its last match decides."""
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    ask = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(ask, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        passes = True
        for rule in rules:
            if any(_matches(part, rule.lstrip("!")) for part in _and_above(name)):
                passes = rule.startswith("!")
        if passes and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def _and_above(name: str) -> list[str]:
    return [name, *(str(parent) for parent in Path(name).parents if str(parent) != ".")]


def _matches(name: str, rule: str) -> bool:
    if rule.startswith("**/"):
        return fnmatchcase(Path(name).name, rule[3:])
    return fnmatchcase(name, rule) and name.count("/") == rule.count("/")


def copied(context: Path, image: Path) -> Path:
    """What the COPY lines lay into the image's working directory."""
    for line in given("COPY"):
        *sources, target = shlex.split(line)
        for source in sources:
            place = image / target / source if target == "./" else image / target
            place.parent.mkdir(parents=True, exist_ok=True)
            if (context / source).is_dir():
                shutil.copytree(context / source, place)
            else:
                shutil.copy2(context / source, place)
    return image


@pytest.fixture
def image(tmp_path: Path) -> Path:
    (tmp_path / "context").mkdir()
    (tmp_path / "image").mkdir()
    return copied(sent_to_docker(tmp_path / "context"), tmp_path / "image")


def test_the_image_holds_what_it_runs_and_nothing_that_shadows_the_platform(image: Path) -> None:
    assert {path.name for path in image.iterdir()} == {
        "app.py", "LICENSE", "README.md", "pyproject.toml", "constraints.txt", "playground", "assets",
    }  # fmt: skip
    names = [path.relative_to(image).as_posix() for path in image.rglob("*")]
    assert "assets/models.toml" in names and "playground/ui/app.py" in names
    assert not [name for name in names if "screenshots" in name or "__pycache__" in name or ".git" in name]


def test_it_runs_as_user_1000_and_installs_as_root() -> None:
    order = [name for name, _ in instructions()]
    assert given("USER") == ["1000"]
    assert "--uid 1000" in given("RUN")[0]
    (before, after) = (given("RUN")[:-1], given("RUN")[-1])
    assert all("install" in line or "useradd" in line for line in before)
    assert order.index("USER") > max(i for i, (_, rest) in enumerate(instructions()) if "install" in rest)
    assert "models fetch" in after


def test_the_extras_that_it_installs_exist() -> None:
    (line,) = [line for line in given("RUN") if "pyproject.toml" in line]
    extras = re.findall(r"--extra (\S+)", line)
    text = (ROOT / "pyproject.toml").read_text()
    assert extras and all(f"\n{extra} = [" in text for extra in extras)


@pytest.mark.slow
@pytest.mark.model
def test_it_starts_on_its_port_and_its_health_check_tells(
    image: Path, python: Path, start: Callable[..., Space], tmp_path: Path
) -> None:
    """As a Docker Space, without the platform's package `spaces`."""
    (tmp_path / "spaces.py").write_text("raise ImportError('no such package')\n")
    (variables,) = given("ENV")
    variables = dict(pair.split("=", 1) for pair in variables.split() if not pair.startswith("PORT="))
    (command,) = (json.loads(line) for line in given("CMD"))
    (check,) = (json.loads(line.partition("CMD ")[2]) for line in given("HEALTHCHECK"))
    assert command[0] == check[0] == "python"
    space = start(
        image,
        *command[1:],
        **variables,
        SPACE_ID="someone/first-token",
        PYTHONPATH=str(tmp_path),
        FIRST_TOKEN_PORT="",
    )
    assert "First Token" in opened(space)
    port = re.search(r":(\d+)/", space.url)
    assert port is not None
    asks = [str(python), *check[1:]]
    environment = {**os.environ, "PORT": port[1]}
    assert subprocess.run(asks, env=environment, capture_output=True, timeout=30).returncode == 0
    space.stop(getattr(signal, given("STOPSIGNAL")[0]))
    assert subprocess.run(asks, env=environment, capture_output=True, timeout=30).returncode != 0
    assert not space.machines_asked
