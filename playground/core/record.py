"""What a trace holds: single runs and comparisons, and races, which are two runs with ticks between them.

Tells the sides of a race among runs by their ids, and puts a race back into the order in which it was
made. Knows no file.
"""

from collections.abc import Iterable, Iterator, Mapping

from playground.core.events import Event, Stepped
from playground.core.race import WITH, WITHOUT, Item, Race, Ticked, result
from playground.core.run import Run

Record = Run | Race


def race_id(run_id: str) -> str:
    """The id of the race that the run of that id is a side of, empty where it is none."""
    ending = next((end for end in (WITHOUT, WITH) if run_id.endswith(end)), "")
    return run_id.removesuffix(ending) if ending else ""


def record_id(record: Record) -> str:
    """The id of a run, or that which both sides of a race share."""
    return record.id if isinstance(record, Run) else race_id(record.cached.id or record.uncached.id)


def runs_of(record: Record) -> list[Run]:
    """The run itself, or those sides of a race that have begun."""
    sides = [record] if isinstance(record, Run) else [record.cached, record.uncached]
    return [run for run in sides if run.events]


def items(record: Record) -> list[Item]:
    """Everything in the order in which it was made; the sides of a race take turns and change who begins."""
    return list(record.events) if isinstance(record, Run) else list(_raced(record))


def paired(runs: Iterable[Run], ticks: Mapping[str, list[Ticked]]) -> list[Record]:
    """`runs` with the sides of each race put together, where the first of them stands; `ticks` are by race id.

    What does not hold together as a race stays two runs.
    """
    found: list[Record] = []
    waiting: dict[str, int] = {}
    for run in runs:
        other = _other_side(run.id)
        place = waiting.pop(other, None) if other else None
        race = None if place is None else _race(found[place], run, ticks.get(race_id(run.id), []))
        if place is not None and race is not None:
            found[place] = race
            continue
        waiting[run.id] = len(found)
        found.append(run)
    return found


def _race(first: Record, second: Run, ticks: list[Ticked]) -> Race | None:
    assert isinstance(first, Run)
    sides = (first, second) if first.id.endswith(WITH) else (second, first)
    race = Race(*sides, ticks=ticks)
    if not _holds_together(race):
        return None
    if first.done and second.done:
        race.raced = result(race)
    return race


def _holds_together(race: Race) -> bool:
    """Whether both sides read one prompt, are one lane of consecutive positions, and each tick has its step."""
    sides = (race.cached, race.uncached)
    prompts = [run.prompt_ids for run in sides]
    if prompts[0] != prompts[1] or not prompts[0] or any(len(run.lanes) != 1 for run in sides):
        return False
    lanes = [run.lanes[0] for run in sides]
    in_place = all(step.position == len(prompts[0]) + step.step for lane in lanes for step in lane.steps)
    both = min(len(lane.steps) for lane in lanes)
    return in_place and [tick.step for tick in race.ticks] == list(range(len(race.ticks)))[:both]


def _other_side(run_id: str) -> str:
    if run_id.endswith(WITHOUT):
        return run_id.removesuffix(WITHOUT) + WITH
    return run_id.removesuffix(WITH) + WITHOUT if run_id.endswith(WITH) else ""


def _raced(race: Race) -> Iterator[Item]:
    sides = [_turns(race.cached), _turns(race.uncached)]
    ticks = {tick.step: tick for tick in race.ticks}
    for turn in range(max(map(len, sides))):
        for side in sides if turn % 2 == 0 else sides[::-1]:
            yield from side[turn] if turn < len(side) else ()
        if turn in ticks:
            yield ticks[turn]
    if race.raced is not None:
        yield race.raced


def _turns(run: Run) -> list[list[Event]]:
    """The events up to each chosen token, and those after the last."""
    turns: list[list[Event]] = [[]]
    for event in run.events:
        turns[-1].append(event)
        if isinstance(event, Stepped):
            turns.append([])
    return turns
