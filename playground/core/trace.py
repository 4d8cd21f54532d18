"""Trace files: a run's events as JSON Lines, version 1.

The first line is a header, then one event a line, exactly what the engine yielded. A file holds any
number of runs; a race is its two runs and, between their events, the ticks and the result under the race's
own id. Replaying needs no model and no tokenizer, and nothing that a trace names is executed or fetched.
Knows no page.
"""

import codecs
import json
import os
import threading
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playground.core.codec import Malformed, UnknownKind, decode, encode
from playground.core.events import Event, Finished, PromptRead, Resumed, Started, Stepped
from playground.core.printable import one_line
from playground.core.race import Item, Race, Raced, Ticked
from playground.core.record import Record, items, paired, race_id, record_id, runs_of
from playground.core.refusal import Refused
from playground.core.request import LANES_LIMIT
from playground.core.run import Run, fold
from playground.core.tokens import Token

FORMAT, VERSION = "first-token-trace", 1
BYTES_LIMIT = 64 * 2**20
CANDIDATES_LIMIT = 1000
"""At one step; the engine records at most 200."""

TOKEN_CHARACTERS_LIMIT = 10_000
KINDS_NAMED = 8


class BadTrace(Refused, ValueError):
    """A file that cannot be read as a trace; the message is one sentence."""


@dataclass(slots=True)
class Trace:
    """A loaded file: its runs in order, and sentences about what had to be left out.

    `records` are the same runs with the two sides of a race put together.
    """

    runs: list[Run] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


def dumps_trace(records: Iterable[Record]) -> str:
    """The text of a trace file that holds `records`."""
    records = list(records)
    lines = [_line(_header([run for record in records for run in runs_of(record)]))]
    lines += [event_line(item, record_id(record)) for record in records for item in items(record)]
    return "\n".join(lines) + "\n"


def event_line(event: Item, race: str = "") -> str:
    """One event as a line of strict JSON, lone surrogates escaped; `race` is the id that ticks are of."""
    data = encode(event)
    return _line({**data, "run": race} if isinstance(event, Ticked | Raced) else data)


def dump_trace(records: Record | Iterable[Record], path: str | Path) -> None:
    """Write one run or race, or several, to `path`, which holds all of it or what it held before."""
    several = [records] if isinstance(records, Run | Race) else records
    path, text = Path(os.path.realpath(path)), dumps_trace(several)
    if path.exists() and not path.is_file():  # /dev/stdout, say
        path.write_text(text, encoding="utf-8")
        return
    part = path.with_name(f".{path.name[:200]}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def load_trace(path: str | Path) -> Trace:
    """Read a trace file; raises `BadTrace`."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_LIMIT + 1)  # some files, /dev/zero for one, have no size and no end
        if len(data) > BYTES_LIMIT:
            raise BadTrace(f"{path.name} is larger than {BYTES_LIMIT // 2**20} MiB; nothing was loaded.")
        return loads_trace(_text(data))
    except OSError as error:
        raise BadTrace(f"{path.name} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise BadTrace(f"{path.name} is not UTF-8 text, so it is no trace file.") from None


def loads_trace(text: str) -> Trace:
    """Read the text of a trace file; raises `BadTrace`."""
    lines = text.split("\n")
    _check_header(lines[0])
    reading = _Reading()
    unknown: Counter[str] = Counter()
    numbered = [(n, line) for n, line in enumerate(lines[1:], start=2) if line.strip()]
    notes = []
    for n, line in numbered:
        try:
            reading.take(json.loads(line))
        except UnknownKind as kind:
            unknown[str(kind)] += 1
        except json.JSONDecodeError:
            if n != numbered[-1][0]:
                raise BadTrace(f"Line {n} of the trace is not JSON; nothing was loaded.") from None
            notes.append("The last line of the trace is cut off; everything before it was loaded.")
        except (ValueError, RecursionError) as error:
            reason = str(error) if isinstance(error, Malformed) else "it cannot be read"
            raise BadTrace(f"Line {n} of the trace is not valid: {reason}; nothing was loaded.") from None
    notes += _skipped(unknown)
    runs = [_run(events) for events in reading.runs]
    return Trace(runs, notes, paired(runs, reading.ticks))


def _skipped(unknown: Counter[str]) -> list[str]:
    """A sentence for each of the commonest unknown kinds: a hostile file may name a million."""
    named = unknown.most_common(KINDS_NAMED)
    notes = [f"{count} events of unknown kind “{one_line(kind)}” were skipped." for kind, count in named]
    more = unknown.total() - sum(count for _, count in named)
    return notes + [f"{more} events of other kinds, also unknown, were skipped."] * (more > 0)


class _Reading:
    """The events of each run, in the order in which the runs start, and the ticks of each race."""

    def __init__(self) -> None:
        self.runs: list[list[Event]] = []
        self.ticks: dict[str, list[Ticked]] = {}
        self._current: dict[str, list[Event]] = {}
        self._steps: dict[str, Counter[int]] = {}

    def take(self, data: Any) -> None:
        """One more line; raises `Malformed`."""
        event = decode(data)
        if isinstance(event, Ticked):
            self.ticks.setdefault(str(data.get("run")), []).append(event)
        elif not isinstance(event, Raced):  # the result follows from the rest
            self._check(event)
            self._add(event)

    def _add(self, event: Event) -> None:
        if isinstance(event, Started) or event.run not in self._current:
            self._current[event.run] = []
            self.runs.append(self._current[event.run])
        self._current[event.run].append(event)

    def _check(self, event: Event) -> None:
        if isinstance(event, Started):
            self._begin(event)
            _require_short(event.prompt)
            if len(event.request.lanes) > LANES_LIMIT:
                raise Malformed(f"a run has at most {LANES_LIMIT} lanes")
        elif isinstance(event, Finished):
            if event.withheld_steps > self._steps.get(event.run, Counter())[event.lane]:
                raise Malformed("more steps are withheld than the lane has")
        elif isinstance(event, Resumed):
            if event.step != self._steps.get(event.run, Counter())[event.lane]:
                raise Malformed("a run goes on from a step that is not its last one")
        elif isinstance(event, PromptRead):
            if any(len(read.expected) > CANDIDATES_LIMIT for read in event.tokens):
                raise Malformed(f"at a place at most {CANDIDATES_LIMIT:,} candidates are expected")
            _require_short(one.token for read in event.tokens for one in read.expected)
        elif isinstance(event, Stepped):
            _require_short([event.token, *(candidate.token for candidate in event.candidates)])
            if len(event.text) > TOKEN_CHARACTERS_LIMIT:
                raise Malformed(f"a step's text has at most {TOKEN_CHARACTERS_LIMIT:,} characters")
            if len(event.candidates) > CANDIDATES_LIMIT:
                raise Malformed(f"a step has at most {CANDIDATES_LIMIT:,} candidates")
            steps = self._steps.setdefault(event.run, Counter())
            if event.step != steps[event.lane]:
                raise Malformed(f"step {event.step} stands where step {steps[event.lane]} belongs")
            steps[event.lane] += 1

    def _begin(self, event: Started) -> None:
        self._steps.pop(event.run, None)
        if event.run in self._current:  # the race of the same id again
            self.ticks.pop(race_id(event.run), None)


def _require_short(tokens: Iterable[Token]) -> None:
    if any(
        len(token.text) > TOKEN_CHARACTERS_LIMIT or len(token.bytes) > TOKEN_CHARACTERS_LIMIT
        for token in tokens
    ):
        raise Malformed(f"a token has at most {TOKEN_CHARACTERS_LIMIT:,} characters")


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
