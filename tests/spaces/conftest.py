"""A Space on this machine: installed as the platform does it, started with its variables, kept off the network."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

from tests.conftest import WORKER

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = Path(__file__).with_name("stand_in")
TORCH = re.compile(r"(torch|torchgen|functorch|torch-[\w.+]+\.dist-info|nvidia.*|triton.*)")
UNREACHABLE = ("NewConnectionError", "name resolution", "Failed to establish", "ConnectTimeout")

ONLY_HERE = '''
"""Whatever asks another machine is refused, and written down."""
import os, socket

def _here(address):
    return not isinstance(address, tuple) or address[0] in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "")

def _only_here(ask):
    def asking(*given, **named):
        address = given[1] if isinstance(given[0], socket.socket) else (given[0],)
        if not _here(address):
            with open(os.environ["ONLY_HERE"], "a") as said:
                print(address, file=said)
            raise OSError("no network here")
        return ask(*given, **named)
    return asking

class Socket(socket.socket):
    connect = _only_here(socket.socket.connect)
    connect_ex = _only_here(socket.socket.connect_ex)

socket.socket, socket.getaddrinfo = Socket, _only_here(socket.getaddrinfo)
'''


@dataclass
class Space:
    """A started Space: where it is, what it prints, and which other machines it asked."""

    url: str
    process: "subprocess.Popen[bytes]"
    log: Path
    asked: Path

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it as the platform does."""
        self.process.send_signal(how)
        self.process.wait(timeout=30)

    @property
    def machines_asked(self) -> str:
        """Empty where it kept to this machine."""
        return self.asked.read_text() if self.asked.exists() else ""


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is made once, by whichever of pytest's processes is the first to want it."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if WORKER else own


@pytest.fixture(scope="session")
def assembled(place: Path) -> Path:
    """The folder of a Space with a CPU; that of ZeroGPU differs in what is installed alone."""

    def make(folder: Path) -> None:
        script = ROOT / "spaces" / "assemble.py"
        subprocess.run([sys.executable, str(script), str(folder)], check=True, timeout=60)

    return _once(place / "space", make)


@pytest.fixture(scope="session")
def python(assembled: Path, place: Path) -> Path:
    """A new environment: the front matter's gradio and `spaces` first, then the requirements, by the index.

    torch alone is taken from here, since installing it takes as long as all the rest. Versions that
    requirements.txt leaves open are what a Space would get today.
    """
    return _once(place / "venv", lambda folder: _install(folder, assembled)) / "bin" / "python"


def _once(folder: Path, make: Callable[[Path], None]) -> Path:
    with FileLock(f"{folder}.lock"):
        if not (done := Path(f"{folder}.done")).exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            done.touch()
    return folder


def _install(folder: Path, assembled: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    made = folder / "bin" / "python"
    _lend_torch(made)
    card = yaml.safe_load((assembled / "README.md").read_text().split("---\n")[1])
    install(made, f"gradio[oauth,mcp]=={card['sdk_version']}", "spaces")
    install(made, "-r", str(assembled / "requirements.txt"))
    said = folder / "asked"
    ask = "import socket; socket.getaddrinfo('nowhere.invalid', 80)"
    refused = subprocess.run(
        [str(made), "-c", ask], env=own_environment() | {"ONLY_HERE": str(said)}, capture_output=True
    )
    assert refused.returncode and "nowhere.invalid" in said.read_text(), "the guard lets everything pass"


@pytest.fixture
def start(python: Path, tmp_path: Path) -> Iterator[Callable[..., Space]]:
    """`start(folder, command, **variables)`: what the platform starts, on a port of its own, until the test ends."""
    started: list[Space] = []

    def start(folder: Path, *command: str, **variables: str) -> Space:
        port, place = free_port(), tmp_path / str(len(started))
        place.mkdir()
        space = Space(f"http://127.0.0.1:{port}/", None, place / "log", place / "asked")  # type: ignore[arg-type]
        environment = own_environment() | {
            "FIRST_TOKEN_HOST": "127.0.0.1", "FIRST_TOKEN_PORT": str(port), "PORT": str(port),
            "GRADIO_SERVER_PORT": str(port), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1",
            "ONLY_HERE": str(space.asked),
        } | variables  # fmt: skip
        with space.log.open("w") as out:
            space.process = subprocess.Popen(
                [str(python), *command], cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT
            )
        started.append(space)
        opened(space)
        return space

    yield start
    for space in started:
        if space.process.poll() is None:
            space.stop()


def install(python: Path, *what: str) -> None:
    """As a Space does; without the index there is no such test."""
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *what], capture_output=True, text=True, timeout=400)
    if done.returncode and any(word in done.stderr for word in UNREACHABLE):
        pytest.skip("The package index cannot be reached, and a Space is installed from it.")
    assert done.returncode == 0, done.stderr


def own_environment() -> dict[str, str]:
    """This process's, without what would tell a child where our checkout and packages are."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def opened(space: Space, path: str = "") -> str:
    """The page's text as soon as it answers with 200; fails with the log if the process ends."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert space.process.poll() is None, space.log.read_text()
        try:
            with urllib.request.urlopen(space.url + path, timeout=5) as answer:
                assert answer.status == 200
                return str(answer.read().decode())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.3)
    raise AssertionError(f"no answer within 120 s: {space.log.read_text()}")


def _lend_torch(python: Path) -> None:
    packages = _packages_of(python)
    lent = packages.parents[2] / "lent"
    lent.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if TORCH.fullmatch(path.name):
            (lent / path.name).symlink_to(path)
    assert (lent / "torch").exists()
    (packages / "lent.pth").write_text(f"{lent}\n")
    (packages / "only_here.py").write_text(ONLY_HERE)
    (packages / "only_here.pth").write_text(
        "import os; os.environ.get('ONLY_HERE') and __import__('only_here')\n"
    )


def _packages_of(python: Path) -> Path:
    probe: Any = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Path(probe.stdout.strip())
