"""One lane of a run of several, as a run of its own: the same events, less those of the other lanes.

Its times are those of the steps that all lanes shared. Knows records only.
"""

from dataclasses import replace
from typing import Any

from playground.core.branch import NoSuchStep
from playground.core.events import Event, Started
from playground.core.run import Run, fold


def alone(run: Run, lane: int) -> Run:
    """The lane numbered `lane` (0-based) of `run`; raises `NoSuchStep` where there is none."""
    if type(lane) is not int or not 0 <= lane < len(run.lanes):
        raise NoSuchStep(f"The run has no lane {repr(lane)[:60]}; nothing was changed.")
    return fold(_of(event, lane) for event in run.events if getattr(event, "lane", None) in (None, lane))


def _of(event: Event, lane: int) -> Event:
    told: Any = event
    if isinstance(told, Started):
        told = replace(told, request=replace(told.request, lanes=(told.request.lanes[lane],)))
    return told if getattr(told, "lane", None) is None else replace(told, lane=0)  # type: ignore[no-any-return]
