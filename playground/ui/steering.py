"""How the run on a stage goes on: pause, single steps, play, back, a pace, and branches from any step.

A run that is in progress is held and let go; one that has ended is continued as a new run from its cache,
which is told as one with it. Every wish comes from the page and is trusted in nothing. Knows no component.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from playground.backends.hosted import HostedRun
from playground.backends.hosted_run import Manner
from playground.backends.protocol import Continuer
from playground.core.branch import continued
from playground.core.decoding import Decoding, InvalidSetting, validated
from playground.core.joining import Joined
from playground.core.refusal import Refused
from playground.core.run import Run
from playground.core.tokens import Token
from playground.ui.branches import ENDS, maker
from playground.ui.session import Tab, read_tab, send
from playground.ui.streaming import Service, refusal
from playground.ui.text import say

WORDS_LIMIT = 2000
"""Characters that may be put in the place of a token."""

END_SECONDS = 5.0
"""How long a run that is to be continued may take to end: its current forward."""

Settings = Callable[[], Decoding]


def steered(
    service: Service, place: str, run: HostedRun | None, data: Any, settings: Settings
) -> Iterator[str]:
    """Carry out one wish of the stage at `place` for the `run` it names; yields packets for the stage.

    `settings` are those in the controls now; they hold for what is chosen from here on.
    """
    tab = read_tab(data)
    try:
        if run is None:
            raise InvalidSetting(say(tab.language, "steering.gone"))
        yield from _Wish(service, place, tab, run, data, settings).carried_out()
    except Refused as error:
        yield send(refusal(error, tab))


class _Wish:
    """One wish of one tab."""

    def __init__(
        self, service: Service, place: str, tab: Tab, run: HostedRun, data: dict[str, Any], settings: Settings
    ) -> None:
        self.service, self.place, self.tab = service, place, tab
        self.run, self.data, self.settings = run, data, settings

    def carried_out(self) -> Iterator[str]:
        ways: dict[str, Callable[[], Iterator[str] | None]] = {
            "pause": self._pause, "play": self._play, "step": self._step, "speed": self._speed,
            "back": self._back, "branch": self._branch, "force": self._force, "ban": self._ban,
            "boost": self._boost, "penalise": self._penalise, "show": self._show,
        }  # fmt: skip
        action = self.data.get("action")
        way = ways.get(action) if isinstance(action, str) else None
        if way is None:
            raise InvalidSetting(say(self.tab.language, "steering.unknown"))
        yield from way() or ()

    def _pause(self) -> None:
        self.run.pause()

    def _play(self) -> Iterator[str]:
        if self._over():
            yield from self._onwards("play")
        else:
            self.run.play()

    def _step(self) -> Iterator[str]:
        if self._over():
            yield from self._onwards("step")
        else:
            self.run.step()

    def _speed(self) -> None:
        pace = self.data.get("tokens_per_second")
        real = isinstance(pace, int | float) and not isinstance(pace, bool) and math.isfinite(pace)
        if pace is not None and not (real and 0.1 <= pace <= 1000):
            raise InvalidSetting(say(self.tab.language, "steering.pace"))
        self.run.control.pace(pace)

    def _back(self) -> Iterator[str]:
        return self._from(self._place(), "hold", {})

    def _branch(self) -> Iterator[str]:
        return self._from(self._place(), "play", {"forced": (self._id(),)})

    def _ban(self) -> Iterator[str]:
        base = self._carried()
        banned = tuple(dict.fromkeys((*base.banned, self._id())))
        return self._from(self._place(), "play", {"banned": banned, "once": not self._whole()})

    def _boost(self) -> Iterator[str]:
        by, id, base = self.data.get("by"), self._id(), self._carried()
        bias = (*((other, value) for other, value in base.bias if other != id), (id, by))
        return self._from(self._place(), "play", {"bias": bias, "once": not self._whole()})

    def _penalise(self) -> Iterator[str]:
        return self._from(self._place(), "play", {"repetition_penalty": self.data.get("penalty")})

    def _force(self) -> Iterator[str]:
        text, step = self.data.get("text"), self._place()
        if not isinstance(text, str) or not 0 < len(text) <= WORDS_LIMIT:
            raise InvalidSetting(say(self.tab.language, "steering.words", count=f"{WORDS_LIMIT:,}"))
        backend: object = maker(self.service.models, self.run)
        if not isinstance(backend, Continuer):
            raise InvalidSetting(say(self.tab.language, "steering.no_model"))
        tokens, _ = backend.continuation(tokens_before(self.run.run, step), text)
        return self._from(step, "play", {"forced": tuple(token.id for token in tokens)})

    def _show(self) -> Iterator[str]:
        wanted = self.data.get("branch")
        found = self.service.runs.get(self.run.session, wanted) if isinstance(wanted, str) else None
        if not isinstance(found, HostedRun):
            raise InvalidSetting(say(self.tab.language, "steering.gone"))
        self.service.wish(self.run.session, self.tab.wish)
        self.service.runs.recall(found)
        return self.service.follow(self.tab, found)

    def _over(self) -> bool:
        """Whether the run takes no step any more; one that is about to end is waited for."""
        return self.run.done or self.run.control.stopped

    def _onwards(self, manner: Manner) -> Iterator[str]:
        self._require_end()
        if self.run.run.lanes and self.run.run.lanes[0].finish_reason in ENDS:
            raise InvalidSetting(say(self.tab.language, "steering.over"))
        return self._from(len(self.run.run.lanes[0].steps) if self.run.run.lanes else 0, manner, {})

    def _from(self, step: int, manner: Manner, changes: dict[str, Any]) -> Iterator[str]:
        """Continue the run from its token number `step` under the settings of now, with `changes`.

        What cannot be done is refused first, so that nothing is stopped for it.
        """
        tab = self.tab
        backend = maker(self.service.models, self.run)
        if backend is None:
            raise InvalidSetting(say(tab.language, "steering.no_model"))
        if len(self.run.run.lanes) != 1:
            raise InvalidSetting(say(tab.language, "steering.one_lane"))
        lane = validated(self._decoding(step, changes))
        number = self.service.wish(self.run.session, tab.wish)
        self.run.stop()
        self._require_end()
        request = replace(continued(self.run.run, step), lanes=(lane,))
        went_on = self.service.begin(
            self.run.session, number, backend, request, Joined(self.run.run, step), manner
        )
        if went_on is not None:
            went_on.control.pace(self.run.control.tokens_per_second)
            yield from self.service.follow(tab, went_on)

    def _decoding(self, step: int, changes: dict[str, Any]) -> Decoding:
        """The controls' settings with the run's seed where none is set: so the draws go on as before."""
        now, before = self.settings(), self._carried()
        most, forced = now.max_new_tokens, len(changes.get("forced", ()))
        left = most - step if step < most else most
        kept: dict[str, Any] = {"bias": before.bias, "banned": before.banned}
        seed = before.seed if now.seed is None else now.seed
        return replace(now, seed=seed, max_new_tokens=max(left, forced + 1), **(kept | changes))

    def _carried(self) -> Decoding:
        """The run's own settings, less what was forced, and banned or favoured for one token."""
        lane = self.run.run.lanes[0].decoding
        return (
            replace(lane, forced=(), bias=(), banned=(), once=False)
            if lane.once
            else replace(lane, forced=())
        )

    def _require_end(self) -> None:
        if not self.run.ended(END_SECONDS):
            raise InvalidSetting(say(self.tab.language, "steering.busy"))

    def _place(self) -> int:
        step = self.data.get("step")
        if (
            type(step) is not int
            or not self.run.run.lanes
            or not 0 <= step <= len(self.run.run.lanes[0].steps)
        ):
            raise InvalidSetting(say(self.tab.language, "steering.place"))
        return step

    def _id(self) -> int:
        id = self.data.get("id")
        if type(id) is not int or id < 0:
            raise InvalidSetting(say(self.tab.language, "steering.token"))
        return id

    def _whole(self) -> bool:
        return self.data.get("whole") is True


def tokens_before(run: Run, step: int) -> list[Token]:
    """The tokens of prompt and answer that stand before `step` of the run's first lane."""
    prompt = list(run.started.prompt) if run.started is not None else []
    return prompt + [one.token for one in run.lanes[0].steps[:step]]
