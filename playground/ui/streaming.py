"""From a hosted run to what a tab's stage is sent, and waiting for a model before it.

Every generator here yields the stage's values as strings. Knows runs, models and tabs, and no
component.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from playground.backends.hosted import Hosted, HostedRace, HostedRun, Runs
from playground.backends.hosted_run import Manner
from playground.backends.protocol import Backend
from playground.core.decoding import Decoding, InvalidSetting
from playground.core.events import Failed
from playground.core.joining import Joined
from playground.core.refusal import Refused
from playground.core.request import Request
from playground.core.run import Run
from playground.ui.branches import steering_packet
from playground.ui.models import Models, Progress
from playground.ui.offer import Offer, no_offer
from playground.ui.sentences import translated
from playground.ui.session import Tab, send
from playground.ui.text import say
from playground.ui.verdicts import verdict_packet
from playground.views.packets import (
    LANES_IN_FULL,
    Packet,
    error_packet,
    events_packet,
    progress_packet,
    race_packet,
    ready_packet,
)

WISHES_LIMIT = 10_000

Begin = Callable[[str, int, Backend], Hosted[Any] | None]
"""From a session's key, the number of its wish and a backend to what runs; None where it wishes otherwise."""


@dataclass(slots=True)
class Service:
    """What the handlers of a page share: models, runs, and who wished for what last."""

    models: Models
    runs: Runs
    offer: Offer = no_offer
    recorded: Run | None = None
    """The run that everybody sees first, and may ask about."""
    _wishes: "OrderedDict[str, tuple[int, int]]" = field(default_factory=OrderedDict)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _lock: threading.RLock = field(default_factory=threading.RLock)
    """Held while a wish becomes a run, or is given up: the last wish is what happens."""

    def wish(self, key: str, asked: int = 0) -> int:
        """A new wish of a session; whatever it waited for before is given up.

        `asked` is the tab's own count (0: unknown); one that a later wish has overtaken on its way is
        given up itself, and its number is 0.
        """
        with self._lock:
            latest, _ = self._wishes.get(key, (0, 0))
            if 0 < asked < latest:
                return 0
            number = next(self._numbers)
            self._wishes.pop(key, None)
            self._wishes[key] = max(asked, latest), number
            while len(self._wishes) > WISHES_LIMIT:
                self._wishes.popitem(last=False)
            return number

    def stands(self, key: str, number: int) -> bool:
        """Whether it is still the session's latest wish."""
        return self._wishes.get(key, (0, 0))[1] == number > 0

    def stop(self, tab: Tab, place: str) -> None:
        """Stop what the tab's stage runs, or waits for."""
        with self._lock:
            if self.wish(tab.key(place), tab.wish):
                self.runs.stop(tab.key(place))

    def begin(
        self, key: str, number: int, backend: Backend, request: Request,
        joined: Joined | None = None, manner: Manner = "play",
    ) -> HostedRun | None:  # fmt: skip
        """Start the run that was wished for; None where the session has another wish by now."""
        with self._lock:
            if not self.stands(key, number):
                return None
            return self.runs.start(key, backend, request, joined=joined, manner=manner)

    def begin_race(self, key: str, number: int, backend: Backend, request: Request) -> HostedRace | None:
        """As `begin`, for a race; it is opened before the lock is held."""
        race = self.runs.race(key, backend, request)
        with self._lock:
            return self.runs.admit(race) if self.stands(key, number) else None

    def generate(
        self, tab: Tab, place: str, model: str | None, request: Request, manner: Manner = "play"
    ) -> Iterator[str]:
        """Make `request` with `model` and send the run as it grows; an error is a sentence."""
        return self._made(
            tab, place, model,
            lambda key, wish, backend: self.begin(key, wish, backend, request, manner=manner),
        )  # fmt: skip

    def race(self, tab: Tab, place: str, model: str | None, request: Request) -> Iterator[str]:
        """Make `request` with the KV cache and without it, and send both as they grow."""
        return self._made(
            tab, place, model, lambda key, wish, backend: self.begin_race(key, wish, backend, request)
        )

    def _made(self, tab: Tab, place: str, model: str | None, begin: Begin) -> Iterator[str]:
        key = tab.key(place)
        number = self.wish(key, tab.wish)
        try:
            self._require_token(tab)
            backend = yield from self.backend(tab, model)
            run = begin(key, number, backend)
        except Refused as error:
            yield send(refusal(error, tab))
            return
        if run is None:  # stopped, or asked for anew, while the model was loading
            yield send(_ready(backend))
            return
        yield from self.follow(tab, run)

    def follow(self, tab: Tab, run: Hosted[Any], first: int = 0) -> Iterator[str]:
        """The run from event `first` on; ends early when the session has begun another one.

        A run that was refused before it started is a sentence only: the page keeps what it shows.
        """
        packet, steering = send({}), Packet()
        for at, events in run.follow(first):
            if self.runs.latest(run.session) is not run:
                return
            if at == 0 and events and isinstance(events[0], Failed):
                yield send(refusal(events[0].message, tab))
                return
            now = self._steering(tab, run)
            if events or now != steering:
                packet = send((told(run, at, events) if events else {}) | (now if now != steering else {}))
            steering = now
            yield packet  # the same one again is a heartbeat that costs the page nothing
        if (now := self._steering(tab, run)) != steering and self.runs.latest(run.session) is run:
            yield send(now)
        yield from self._judge(run)

    def _steering(self, tab: Tab, run: Hosted[Any]) -> Packet:
        return (
            steering_packet(self.models, self.runs, run, tab.language) if isinstance(run, HostedRun) else {}
        )

    def _judge(self, run: Hosted[Any]) -> Iterator[str]:
        """What decode waited for, once the run has ended; the first one takes a measurement of the device."""
        verdict = verdict_packet(self.models, run.run) if isinstance(run, HostedRun) else None
        if verdict is not None and self.runs.latest(run.session) is run:
            yield send(verdict)

    def backend(self, tab: Tab, model: str | None) -> Generator[str, None, Backend]:
        """Wait for a model and send its progress; returns the backend, raises `Refused`."""
        waiting = self.models.ready(model)
        while True:
            try:
                progress = next(waiting)
            except StopIteration as ready:
                return ready.value
            yield send(_progress(progress, tab.language))

    def introduce(self, tab: Tab, model: str | None = None) -> Iterator[str]:
        """Send the model's progress until it is there, then what it is."""
        try:
            yield send(_ready((yield from self.backend(tab, model))))
        except Refused as error:
            yield send(refusal(error, tab))

    def _require_token(self, tab: Tab) -> None:
        if not tab.token:
            raise InvalidSetting(say(tab.language, "errors.no_session"))


def told(run: Hosted[Any], first: int, events: Sequence[Any]) -> Packet:
    """Events of a run or a race from `first` on, as its stage takes them."""
    label = {"label": run.label if run.label in ("", "lane") else "opened"}
    if isinstance(run, HostedRace):
        return race_packet(run.id, first, events) | label
    brief = len(run.request.lanes) > LANES_IN_FULL
    return events_packet(run.id, first, events, brief=brief) | label


def refusal(message: object, tab: Tab) -> Packet:
    """The sentence that the page shows, in the tab's language."""
    return error_packet(translated(str(message), tab.language))


def suggests(backend: Backend | None) -> Decoding | None:
    """The sampling settings that the model's authors ship, where the backend knows them."""
    found = getattr(getattr(backend, "model", None), "suggested", None)
    return found if isinstance(found, Decoding) else None


def _ready(backend: Backend) -> Packet:
    return ready_packet(backend.facts(), suggests(backend) is not None)


def _progress(progress: Progress | None, language: str) -> Packet:
    if progress is None:
        return progress_packet(say(language, "progress.waiting"))
    return progress_packet(
        say(language, f"progress.{progress.step}"), progress.done_bytes, progress.total_bytes
    )
