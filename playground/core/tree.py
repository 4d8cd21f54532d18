"""Many draws from one prompt as a weighted tree of continuations.

A branch is a stretch of tokens that all its draws share; it ends where they part or where one of them
stops. Beside the share of draws that entered a branch stands the probability with which the settings enter
it: the product of the recorded processed probabilities up to its first token. Knows records only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from playground.core.decoding import Decoding, InvalidSetting, require_whole, validated
from playground.core.draws import SEED_LIMIT, fresh_seed
from playground.core.events import Stepped
from playground.core.request import LANES_LIMIT
from playground.core.run import Lane


@dataclass(frozen=True, slots=True)
class Branch:
    """A stretch of tokens that `count` draws have in common, after the one that leads to it.

    `first` and `end` are the steps that it spans, `end` excluded. `probability` is what `count` estimates:
    that of the way from the prompt to its first token, under the settings; `whole_probability` is that of
    the way to its end. `tips` of its draws go no further so far. `children` come with
    the most draws first, then the most probable, then by id.
    """

    token_ids: tuple[int, ...]
    text: str
    first: int
    count: int
    tips: int
    probability: float
    whole_probability: float
    lanes: tuple[int, ...]
    children: tuple["Branch", ...]

    @property
    def end(self) -> int:
        """The step after its last token."""
        return self.first + len(self.token_ids)

    @property
    def endings(self) -> int:
        """How many different continuations there are from here."""
        return sum(child.endings for child in self.children) + (self.tips > 0)


def many_draws(decoding: Decoding, count: int) -> tuple[Decoding, ...]:
    """`count` lanes with one lane's settings and seeds from its own on; one is drawn where it has none.

    Raises `InvalidSetting` for settings without a draw, a count outside 2 to 64, and seeds past the last one.
    """
    require_whole("draws", count, 2, LANES_LIMIT)
    if validated(decoding).greedy:
        raise InvalidSetting(
            "Greedy decoding has no draw, so every run would be the same; choose settings with a temperature."
        )
    seed = fresh_seed() if decoding.seed is None else decoding.seed
    if seed + count > SEED_LIMIT:
        raise InvalidSetting("The seeds of these draws would pass the last one; begin with a smaller seed.")
    return tuple(replace(decoding, seed=seed + i) for i in range(count))


def same_settings(lanes: Sequence[Lane]) -> bool:
    """Whether several lanes differ in nothing but their seeds, so that they are draws of one distribution."""
    settings = {replace(lane.decoding, seed=None, name="") for lane in lanes}
    return len(lanes) > 1 and len(settings) == 1 and not lanes[0].decoding.greedy


def tree(lanes: Sequence[Lane]) -> Branch:
    """The tree of `lanes`; its root is what all of them share, empty where they part at once."""
    return _branch(list(lanes), 0, 1.0)


def as_json(branch: Branch, total: int) -> dict[str, Any]:
    """A branch and what follows it; `share` is that of all `total` draws."""
    return {
        "token_ids": list(branch.token_ids),
        "text": branch.text,
        "count": branch.count,
        "share": branch.count / total,
        "probability": branch.probability,
        "whole_probability": branch.whole_probability,
        "ended": branch.tips,
        "lanes": list(branch.lanes),
        "children": [as_json(child, total) for child in branch.children],
    }


def _branch(lanes: list[Lane], first: int, before: float) -> Branch:
    """What `lanes`, which are the same up to step `first`, share from there, and what follows.

    `before` is the probability of the way to that step.
    """
    leader, end = lanes[0], first
    ways = [before]
    while all(_same(lane, leader, end) for lane in lanes):
        ways.append(ways[-1] * leader.steps[end].processed_probability)
        end += 1
    taken = leader.steps[first:end]
    going: dict[int, list[Lane]] = {}
    for lane in lanes:
        if len(lane.steps) > end:
            going.setdefault(lane.steps[end].token.id, []).append(lane)
    return Branch(
        token_ids=tuple(step.token.id for step in taken),
        text=_text(leader, taken, ends=not going),
        first=first,
        count=len(lanes),
        tips=sum(len(lane.steps) == end for lane in lanes),
        probability=ways[min(1, len(ways) - 1)],
        whole_probability=ways[-1],
        lanes=tuple(lane.index for lane in lanes),
        children=tuple(_branch(group, end, ways[-1]) for group in _ordered(going, end)),
    )


def _same(lane: Lane, leader: Lane, step: int) -> bool:
    if len(lane.steps) <= step or len(leader.steps) <= step:
        return False
    return lane.steps[step].token.id == leader.steps[step].token.id


def _ordered(going: dict[int, list[Lane]], step: int) -> list[list[Lane]]:
    """Groups of lanes by the token that they take at `step`."""

    def place(item: tuple[int, list[Lane]]) -> tuple[float, float, int]:
        id, lanes = item
        return -len(lanes), -lanes[0].steps[step].processed_probability, id

    return [lanes for _, lanes in sorted(going.items(), key=place)]


def _text(lane: Lane, steps: Sequence[Stepped], *, ends: bool) -> str:
    tail = lane.finished.tail if ends and lane.finished is not None and steps else ""
    return "".join(step.text for step in steps) + tail
