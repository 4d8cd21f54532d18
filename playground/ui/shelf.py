"""The traces that one browser tab can reach: its own runs, what it brought, what ships, what was saved.

A trace that is opened becomes a run of the tab, made by replaying its record at once, and is from then on
like any other: found again after a reload, bounded and forgotten with the rest. Knows no component.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from playground.backends.hosted import Hosted
from playground.backends.replay import ReplayBackend, ReplayRaceBackend
from playground.core.alone import alone
from playground.core.record import Record, runs_of
from playground.core.run import Run
from playground.core.trace import BadTrace, Trace, load_trace, loads_trace
from playground.ui.archive import Archive
from playground.ui.session import Tab
from playground.ui.streaming import Service
from playground.views.entries import shipped
from playground.views.packets import layout_of

PLACES = ("run", "compare", "race")
LISTED = 50
"""Runs of a tab that are listed, youngest first."""

BROUGHT_BYTES = 16 * 2**20
"""Of a file that a page brings: about 7,000 tokens with 20 candidates each."""

BROUGHT_RECORDS = 24
NOT_THERE = "This trace is no longer here; nothing was opened."


@dataclass(frozen=True, slots=True)
class Shelved:
    """One thing on the shelf: the key that the page asks for it by, its origin, and what it holds.

    `name` is the stem of a shipped trace's file.
    """

    key: str
    origin: str
    record: Record
    name: str = ""


class Shelf:
    """The shelf of a page. `several` is the comparison that everybody sees first; `archive` is listed only where
    nobody but this machine reaches the page."""

    def __init__(
        self, service: Service, folder: Path, archive: Archive | None = None, several: Run | None = None
    ) -> None:
        self.service, self._folder, self.several = service, folder, several
        self.archive = archive if service.models.open_names else None

    @cached_property
    def shipped(self) -> list[Shelved]:
        """The records that come with the program; a file that is broken is left out."""
        found: list[Shelved] = []
        for path in shipped(self._folder):
            try:
                records = load_trace(path).records
            except BadTrace:
                continue
            found += [
                Shelved(f"shipped:{path.stem}:{n}", "recorded", record, path.stem)
                for n, record in enumerate(records)
            ]
        return found

    def own(self, tab: Tab) -> list[Shelved]:
        """What the tab has made or brought, youngest first."""
        if not tab.token:
            return []
        hosted = self.service.runs.of(*(tab.key(place) for place in PLACES))
        ended = [
            one for one in reversed(hosted) if one.done and one.label != "example" and _steps(one.record)
        ]
        return [Shelved(f"own:{one.id}", one.label or "yours", one.record) for one in ended[:LISTED]]

    def find(self, tab: Tab, key: object) -> Shelved:
        """What the page asks for; raises `BadTrace` where it is not there, or broken."""
        kind, _, name = key.partition(":") if isinstance(key, str) else ("", "", "")
        if kind == "saved" and self.archive is not None and (path := self.archive.path(name)):
            records = load_trace(path).records
            if records:
                return Shelved(str(key), "saved", records[0])
        known = self.own(tab) if kind == "own" else self.shipped if kind == "shipped" else []
        found = next((one for one in known if one.key == key), None)
        if found is None:
            raise BadTrace(NOT_THERE)
        return found

    def open(self, tab: Tab, key: object) -> Hosted[Any]:
        """Put what the page asks for on its stage; raises `Refused`."""
        found = self.find(tab, key)
        if found.key.startswith("own:"):
            for place in PLACES:
                hosted = self.service.runs.get(tab.key(place), found.key.removeprefix("own:"))
                if hosted is not None:
                    self.service.wish(hosted.session)
                    return self.service.runs.recall(hosted)
            raise BadTrace(NOT_THERE)
        return self._host(tab, found.record, "example" if found.origin == "recorded" else found.origin)

    def lane(self, tab: Tab, run: str | None, lane: object) -> Hosted[Any]:
        """Put one lane of an ended comparison on the Playground's stage, as a run of its own; raises `Refused`."""
        found = self.service.runs.get(tab.key("compare"), run) if run else None
        several = found.record if found is not None and found.done else None
        if several is None and self.several is not None and run == self.several.id:
            several = self.several
        if not isinstance(several, Run):
            raise BadTrace(NOT_THERE)
        return self._host(tab, alone(several, lane if type(lane) is int else -1), "lane")

    def bring(self, tab: Tab, name: str, text: str) -> tuple[list[Hosted[Any]], list[str]]:
        """Take the text of a file: its runs, the first of them on its stage, and what had to be left out.

        Raises `Refused`; then nothing has changed.
        """
        if len(text) > BROUGHT_BYTES or len(text.encode("utf-8", "surrogatepass")) > BROUGHT_BYTES:
            raise BadTrace(f"{name} is larger than {BROUGHT_BYTES // 2**20} MiB; nothing was loaded.")
        trace = loads_trace(text.removeprefix("\ufeff"))
        if not trace.records:
            raise BadTrace(f"{name} holds no run.")
        kept = trace.records[:BROUGHT_RECORDS]
        hosted = [self._host(tab, record, "imported") for record in reversed(kept)][::-1]
        return hosted, list(_notes(trace))

    def _host(self, tab: Tab, record: Record, label: str) -> Hosted[Any]:
        """The record as an ended run of the tab's stage for it."""
        runs = self.service.runs
        key = tab.key(layout_of(record))
        self.service.wish(key)
        started = runs_of(record)[0].started
        assert started is not None
        request = replace(started.request, run="")
        hosted: Hosted[Any]
        if isinstance(record, Run):
            hosted = runs.start(key, ReplayBackend(record, None), request, label)
        else:
            hosted = runs.admit(runs.race(key, ReplayRaceBackend(record), request, label))
        for _ in hosted.follow(interval_seconds=0):
            pass  # the next one of the same stage would stop it
        return hosted


def records_of(shelved: Sequence[Shelved]) -> list[Record]:
    """What they hold, in the order in which it was made."""
    return [one.record for one in reversed(shelved)]


def _steps(record: Record) -> bool:
    return any(lane.steps for run in runs_of(record) for lane in run.lanes)


def _notes(trace: Trace) -> Iterator[str]:
    yield from trace.notes
    if len(trace.records) > BROUGHT_RECORDS:
        yield f"Only the first {BROUGHT_RECORDS} runs of the file were taken."
