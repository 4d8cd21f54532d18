"""The fields of Compare as a run was asked: after a reload, and when a trace is opened there.

Knows the fields' order, and no run.
"""

from dataclasses import replace
from typing import Any

from playground.core.decoding import GREEDY, Decoding, InvalidSetting, parse_decoding, validated
from playground.core.request import Request
from playground.ui import presets
from playground.ui.lane_tools import Rows
from playground.ui.lanes import LANES, OWN, Fields
from playground.ui.text import whole


def fields_of_run(request: Request) -> list[Any] | None:
    """Values of `CompareTab.fields`; None where the page's fields cannot say what the run was asked.

    Many draws stand in run B, beside a greedy one; of more runs than the page has the first ones are taken.
    """
    lanes = request.lanes
    if len(lanes) < 2:
        return None
    if len(lanes) > len(LANES) and len({replace(lane, seed=None) for lane in lanes}) == 1:
        lanes = (replace(GREEDY, max_new_tokens=lanes[0].max_new_tokens), lanes[0])
    try:
        fields = _fields(tuple(validated(lane) for lane in lanes[: len(LANES)]))
    except InvalidSetting:
        return None
    count = lanes[0].max_new_tokens
    if not all(map(_written, lanes[: len(LANES)], fields.specs)):
        return None
    mode = "chat" if request.chat else "raw"
    shown, *rows = Rows.updates(fields)
    return [whole(request.prompt), mode, whole(request.system or ""), count, shown, *rows]


def _fields(lanes: tuple[Decoding, ...]) -> Fields:
    empty = len(LANES) - len(lanes)
    specs = [whole(_spec(lane, lanes[0].max_new_tokens)) for lane in lanes]
    return Fields(
        (True,) * len(lanes) + (False,) * empty,
        (*map(presets.preset_of, specs), *(OWN,) * empty),
        (*specs, *("greedy",) * empty),
    )


def _spec(lane: Decoding, count: int) -> str:
    """The lane's settings; its length too where it is not that of the others."""
    spec = presets.spec_of(lane)
    return spec if lane.max_new_tokens == count else f"{spec},max_new_tokens={lane.max_new_tokens}"


def _written(lane: Decoding, spec: str) -> bool:
    """Whether `spec` says all that the lane was asked: tokens to force or ban have no place in one."""
    base = Decoding(max_new_tokens=lane.max_new_tokens)
    return parse_decoding(spec, base) == replace(lane, name="")
