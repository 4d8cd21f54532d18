"""Logits of steps that were asked about, kept on the server: the most probable of each, bounded in bytes.

Nothing is collected while a run is made: a row is kept when its step is computed again for a first
question, and answers the next ones. A row has the top candidates in fp32 and the logsumexp of all, so what
lies beyond it is bounded: settings are judged with nothing beyond and with as much as there can be, by
the pipeline that draws; where both keep the same candidates, all of them in the row, the answer is that of
the full logits, and elsewhere there is none. Knows no page; an owner is a key that somebody gave.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import torch

from playground.core.decoding import Decoding
from playground.engine.choice import Candidates, Choice, Chosen, choose, read
from playground.engine.pipeline import build, highest
from playground.engine.raw import raw_rows

TOP = 1024
OWNER_LIMIT_BYTES = 16 * 2**20
PROCESS_LIMIT_BYTES = 128 * 2**20
_MASS_KNOWN_WITHIN = 0.005

Place = tuple[str, int, int]
"""Run, lane and step."""


@dataclass(frozen=True, slots=True)
class KeptRow:
    """The `TOP` most probable of one step: `ids` rising and their raw `logits`, on the host."""

    ids: torch.Tensor
    logits: torch.Tensor
    logsumexp: float
    vocabulary: int

    @property
    def held_bytes(self) -> int:
        """What the row takes."""
        return self.ids.nbytes + self.logits.nbytes


def keep(raw: torch.Tensor) -> KeptRow:
    """The row of `raw` logits (vocabulary,)."""
    ids = highest(raw[None], min(TOP, len(raw)))[0].sort().values
    return KeptRow(ids.int().cpu(), raw[ids].cpu(), float(raw.logsumexp(0)), len(raw))


class KeptLogits:
    """Rows by owner and place; the oldest go where an owner's or the process's bytes are spent."""

    def __init__(
        self, owner_limit_bytes: int = OWNER_LIMIT_BYTES, process_limit_bytes: int = PROCESS_LIMIT_BYTES
    ) -> None:
        self.owner_limit_bytes, self.process_limit_bytes = owner_limit_bytes, process_limit_bytes
        self._rows: OrderedDict[str, OrderedDict[Place, KeptRow]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, owner: str, place: Place) -> KeptRow | None:
        """The row of a step, if it is still kept."""
        with self._lock:
            return self._rows.get(owner, OrderedDict()).get(place)

    def put(self, owner: str, place: Place, row: KeptRow) -> None:
        """Keep a row; older ones make room."""
        with self._lock:
            own = self._rows.setdefault(owner, OrderedDict())
            self._rows.move_to_end(owner)
            own.pop(place, None)
            own[place] = row
            while _bytes(own) > self.owner_limit_bytes:
                own.popitem(last=False)
            while self._held() > self.process_limit_bytes:
                self._drop_oldest()

    def held_bytes(self, owner: str | None = None) -> int:
        """Bytes that are kept for `owner`, or for all."""
        with self._lock:
            return self._held() if owner is None else _bytes(self._rows.get(owner, OrderedDict()))

    def forget(self, run: str) -> None:
        """Let go of everything of `run`."""
        with self._lock:
            for owner, own in list(self._rows.items()):
                for place in [place for place in own if place[0] == run]:
                    del own[place]
                if not own:
                    del self._rows[owner]

    def _held(self) -> int:
        return sum(map(_bytes, self._rows.values()))

    def _drop_oldest(self) -> None:
        owner, own = next(iter(self._rows.items()))  # who asked last stands last
        own.popitem(last=False)
        if not own:
            del self._rows[owner]


def _bytes(rows: "OrderedDict[Place, KeptRow]") -> int:
    """Rows of one model are of one size, but an owner may have asked two."""
    if not rows:
        return 0
    return len(rows) * max(next(iter(rows.values())).held_bytes, next(reversed(rows.values())).held_bytes)


def judge(
    raw: torch.Tensor, looked: Sequence[int], decoding: Decoding, draw: float | None, top_n: int
) -> Choice:
    """What `decoding` takes of full `raw` logits (vocabulary,); `looked` are the ids that a penalty sees."""
    return read([_chosen(raw, looked, decoding, draw, top_n)])[0]


def judge_kept(
    row: KeptRow, looked: Sequence[int], decoding: Decoding, draw: float | None, top_n: int
) -> tuple[Choice, float | None] | None:
    """The same from a kept row, with the kept mass where it is known; None where the row does not tell."""
    places = {id: place for place, id in enumerate(row.ids.tolist())}
    lifted = decoding.repetition_penalty < 1 and len(row.ids) < row.vocabulary
    if lifted or any(by > 0 and id not in places for id, by in decoding.bias):
        return None  # a candidate from beyond the row could rise into it
    own = _in_places(decoding, places)
    seen = [places[id] for id in looked if id in places]
    crowd = torch.cat([row.logits, _crowd(row, own)])
    if "typical_p" in own.active_stages():  # it looks at the entropy of all that is left
        lone, crowded = (_chosen(raw, seen, own, 0.0, 1, until="typical_p") for raw in (row.logits, crowd))
        if not _same(lone, crowded, len(row.ids)):
            return None
    lone, crowded = _chosen(row.logits, seen, own, draw, top_n), _chosen(crowd, seen, own, draw, 1)
    return _named(row, lone, crowded) if _same(lone, crowded, len(row.ids)) else None


def _in_places(decoding: Decoding, places: dict[int, int]) -> Decoding:
    """The settings with the row's places for ids; those beyond it are part of what is not known."""
    bias = tuple((places[id], by) for id, by in decoding.bias if id in places)
    return replace(decoding, bias=bias, banned=tuple(places[id] for id in decoding.banned if id in places))


def _chosen(
    raw: torch.Tensor,
    looked: Sequence[int],
    decoding: Decoding,
    draw: float | None,
    top_n: int,
    until: str | None = None,
) -> Chosen:
    """The choice by the stages before the one named `until`; who asks has left out what is not looked at."""
    stages = build(replace(decoding, penalty_scope="all"), 0)
    stages = tuple(takewhile(lambda stage: stage.name != until, stages))
    ids = torch.tensor(list(looked), dtype=torch.long, device=raw.device)
    return choose(raw_rows(raw[None], top_n)[0], ids, stages, draw)


def _crowd(row: KeptRow, decoding: Decoding) -> torch.Tensor:
    """Candidates as high as the lowest of the row, as many as weigh at least what lies beyond it.

    At temperatures above 1 the rest weighs most where it is spread evenly, below where it is heaped up.
    """
    beyond = row.vocabulary - len(row.ids)
    if not beyond:
        return row.logits[:0]
    share = max(1e-7, 1 - float((row.logits.double() - row.logsumexp).exp().sum()))
    lowest = row.logits.min()
    unit = math.exp(float(lowest) - row.logsumexp)
    count = share / unit if unit else math.inf
    if not decoding.greedy and decoding.temperature > 1 and unit:
        count = max(count, beyond * min(1.0, share / beyond / unit) ** (1 / decoding.temperature))
    return lowest.expand(min(beyond, 1 + math.ceil(min(count, beyond))))


def _same(lone: Chosen, crowded: Chosen, size: int) -> bool:
    kept, all_kept = lone.processed() > -torch.inf, crowded.processed() > -torch.inf
    return torch.equal(kept, all_kept[:size]) and not bool(all_kept[size:].any())


def _named(row: KeptRow, lone: Chosen, crowded: Chosen) -> tuple[Choice, float | None]:
    """The choice with the vocabulary's ids in the place of the row's, under the full distribution."""
    choice, other = read([lone, crowded])
    found = choice.candidates
    logprobs = [_logprob(row, place) for place in found.ids]
    named = Candidates(
        [int(row.ids[place]) for place in found.ids],
        logprobs,
        found.processed_probabilities,
        found.removed_by,
    )
    logprob = _logprob(row, choice.id)
    low, high = other.kept_mass, choice.kept_mass
    mass = high if abs(high - low) < _MASS_KNOWN_WITHIN else None
    mass = math.exp(logprob) if lone.survivors is None else mass
    named_choice = replace(
        choice, id=int(row.ids[choice.id]), raw_logprob=logprob, logsumexp=row.logsumexp, candidates=named
    )
    return named_choice, mass


def _logprob(row: KeptRow, place: int) -> float:
    return min(0.0, float(row.logits[place]) - row.logsumexp)
