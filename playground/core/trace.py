"""Trace files: a run's events as JSON Lines, version 1.

The first line is a header, then one event a line, exactly what the engine yielded. Replaying needs
no model and no tokenizer, and nothing that a trace names is executed or fetched. Knows no page.
"""

import codecs
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playground.core.codec import Malformed, UnknownKind, decode, encode
from playground.core.events import Event, Started
from playground.core.refusal import Refused
from playground.core.run import Run, fold

FORMAT, VERSION = "first-token-trace", 1
BYTES_LIMIT = 256 * 2**20


class BadTrace(Refused, ValueError):
    """A file that cannot be read as a trace; the message is one sentence."""


@dataclass(slots=True)
class Trace:
    """A loaded file: its runs in order, and sentences about what had to be left out."""

    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def dumps_trace(runs: Iterable[Run]) -> str:
    """The text of a trace file that holds `runs`."""
    runs = list(runs)
    lines = [_line(_header(runs))]
    lines += [event_line(event) for run in runs for event in run.events]
    return "\n".join(lines) + "\n"


def event_line(event: Event) -> str:
    """One event as a line of strict JSON, lone surrogates escaped."""
    return _line(encode(event))


def dump_trace(runs: Run | Iterable[Run], path: str | Path) -> None:
    """Write one run, or several, to `path`."""
    Path(path).write_text(dumps_trace([runs] if isinstance(runs, Run) else runs), encoding="utf-8")


def load_trace(path: str | Path) -> Trace:
    """Read a trace file; raises `BadTrace`."""
    path = Path(path)
    try:
        if path.stat().st_size > BYTES_LIMIT:
            raise BadTrace(f"{path.name} is larger than {BYTES_LIMIT // 2**20} MiB; nothing was loaded.")
        return loads_trace(_text(path.read_bytes()))
    except OSError as error:
        raise BadTrace(f"{path.name} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise BadTrace(f"{path.name} is not UTF-8 text, so it is no trace file.") from None


def loads_trace(text: str) -> Trace:
    """Read the text of a trace file; raises `BadTrace`."""
    lines = text.split("\n")
    _check_header(lines[0])
    trace = Trace()
    events: list[Event] = []
    unknown: Counter[str] = Counter()
    numbered = [(n, line) for n, line in enumerate(lines[1:], start=2) if line.strip()]
    for n, line in numbered:
        try:
            events.append(decode(json.loads(line)))
        except UnknownKind as kind:
            unknown[str(kind)] += 1
        except json.JSONDecodeError:
            if n != numbered[-1][0]:
                raise BadTrace(f"Line {n} of the trace is not JSON; nothing was loaded.") from None
            trace.notes.append("The last line of the trace is cut off; everything before it was loaded.")
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, Malformed) else "it cannot be read"
            raise BadTrace(f"Line {n} of the trace is not valid: {reason}; nothing was loaded.") from None
    trace.notes += [
        f"{count} events of unknown kind “{kind}” were skipped." for kind, count in unknown.items()
    ]
    trace.runs = [_run(run_events) for run_events in _by_run(events)]
    return trace


def _by_run(events: list[Event]) -> list[list[Event]]:
    """The events of each run, in the order in which the runs start."""
    runs: list[list[Event]] = []
    current: dict[str, list[Event]] = {}
    for event in events:
        if isinstance(event, Started) or event.run not in current:
            current[event.run] = []
            runs.append(current[event.run])
        current[event.run].append(event)
    return runs


def _run(events: list[Event]) -> Run:
    if not isinstance(events[0], Started) or not events[0].request.lanes:
        raise BadTrace("A run in the trace does not begin with a start and its lanes; nothing was loaded.")
    try:
        return fold(events)
    except IndexError:
        raise BadTrace("An event in the trace names a lane that its run does not have.") from None


def _line(value: dict[str, Any]) -> str:
    """`value` as one line of strict JSON; lone surrogates, which UTF-8 cannot hold, are escaped."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _text(data: bytes) -> str:
    """The file's text; a character that the end of the file cuts in two is left out."""
    return codecs.getincrementaldecoder("utf-8-sig")().decode(data)


def _header(runs: list[Run]) -> dict[str, Any]:
    requests = []
    for run in runs:
        if run.started is not None:
            model = run.started.model
            requests.append({
                "model": model.name, "revision": model.revision,
                "device": model.device, "dtype": model.dtype,
                **encode(run.started)["request"],
            })  # fmt: skip
    return {"format": FORMAT, "version": VERSION, "requests": requests}


def _check_header(line: str) -> None:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise BadTrace("This file does not begin like a First Token trace; nothing was loaded.")
    version = header.get("version")
    if type(version) is not int or version < 1:
        raise BadTrace("This trace does not say its version as a whole number; nothing was loaded.")
    if version > VERSION:
        raise BadTrace(
            f"This trace is of a version newer than the {VERSION} that this program reads; update it."
        )
