"""The folder in which the runs of this server are kept as trace files, where one was asked for.

Knows no page and no session.
"""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from playground.backends.hosted import Hosted
from playground.core.record import runs_of
from playground.core.trace import dump_trace

LISTED = 100
HEADER_CHARACTERS = 2_000_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Saved:
    """One file of the folder: its name, its size and the prompt of its first run."""

    name: str
    bytes: int
    prompt: str


class Archive:
    """A folder of trace files; called with each run that has ended, it writes one more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, hosted: Hosted[Any]) -> None:
        """Write what was made here; what cannot be written is said in the log, and the run is as it was."""
        if hosted.label or not any(run.started for run in runs_of(hosted.record)):
            return
        place = hosted.session.rpartition(".")[2][:12]
        name = f"{datetime.now():%Y-%m-%d-%H%M%S}-{place}-{hosted.id[:6]}.jsonl"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            dump_trace(hosted.record, self.folder / name)
        except OSError:
            _log.exception("A trace could not be written into the folder.")

    def listed(self) -> list[Saved]:
        """The youngest files, youngest first."""
        found = sorted(self._files(), key=_modified, reverse=True)
        return [Saved(path.name, _bytes(path), _prompt(path)) for path in found[:LISTED]]

    def path(self, name: str) -> Path | None:
        """The file of that name, if the folder has one; a path is no name."""
        return next((path for path in self._files() if path.name == name), None)

    def _files(self) -> Iterator[Path]:
        """Whatever else lies there is no trace; a pipe of that name would be waited for without an end."""
        return (path for path in self.folder.glob("*.jsonl") if path.is_file())


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # deleted since
        return 0


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _prompt(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            requests = json.loads(file.readline(HEADER_CHARACTERS))["requests"]
        prompt = requests[0]["prompt"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return ""
    return prompt if isinstance(prompt, str) else ""
