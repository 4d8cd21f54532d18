"""What the server sends to the stage: one JSON object with only what is new.

A packet names its run and where in the run its events begin, so that a gap is seen and asked for
again. Pure: knows no gradio and no clock.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from playground.core.codec import encode
from playground.core.cost import Device
from playground.core.events import Event, Stepped
from playground.core.phases import Phase
from playground.core.race import WITH, Item, Race, work
from playground.core.record import Record, items, record_id
from playground.core.request import ModelFacts
from playground.core.run import Run

Packet = dict[str, Any]


LANES_IN_FULL = 7
"""A run of more lanes is many draws: its steps are sent in brief, since 64 of them come at a time."""

_DETAILS = (
    "run", "position", "start_seconds", "logsumexp", "stages", "parent", "held_characters", "kv_tokens",
    "kv_allocated_bytes", "kv_predicted_bytes", "kv_state_bytes", "positions_computed", "positions_reused",
)  # fmt: skip
"""What of a step neither the tree nor the measures are made of; a trace file has it."""


def events_packet(
    run: str, first: int, events: Iterable[Event], *, label: str = "", brief: bool = False
) -> Packet:
    """Events of `run` in order; `first` is the index of the first of them in the run."""
    found = [_in_brief(e) if brief and isinstance(e, Stepped) else encode(e) for e in events]
    return {"run": run, "first": first, "events": found, "label": label}


def _in_brief(step: Stepped) -> dict[str, Any]:
    return {name: value for name, value in encode(step).items() if name not in _DETAILS}


def recorded_packet(events: Sequence[Event]) -> Packet:
    """A whole recorded run, shown before anybody has pressed Generate."""
    return events_packet(events[0].run, 0, events, label="recorded")


def record_packet(record: Record, *, label: str = "") -> Packet:
    """A whole run or race in one packet."""
    if isinstance(record, Run):
        return events_packet(record.id, 0, record.events, label=label)
    return race_packet(record_id(record), 0, items(record)) | {"label": label}


def layout_of(record: Record) -> str:
    """The layout of the stage that shows it: run, compare or race."""
    if isinstance(record, Race):
        return "race"
    return "run" if len(record.lanes) == 1 else "compare"


def race_packet(race: str, first: int, items: Iterable[Item]) -> Packet:
    """Items of `race` in order; each step carries its side's work so far."""
    return {"run": race, "first": first, "events": [_raced(item) for item in items], "label": ""}


def _raced(item: Item) -> dict[str, Any]:
    data = encode(item)
    if isinstance(item, Stepped):
        prompt_tokens = item.position - item.step
        data["work"] = asdict(work(prompt_tokens, item.step + 1, cached=item.run.endswith(WITH)))
    return data


def work_packet(prompt_tokens: int, new_tokens: int) -> Packet:
    """The counts of a race of any length, which no model has to run; raises `InvalidSetting`."""
    sides = {
        name: asdict(work(prompt_tokens, new_tokens, cached=name == "cached"))
        for name in ("cached", "uncached")
    }
    return {"error": "", "work": {"prompt": prompt_tokens, "new": new_tokens, **sides}}


def error_packet(message: str) -> Packet:
    """One sentence in the place where the result would be; the finished run stays."""
    return {"error": message, "progress": None}


def progress_packet(sentence: str, done_bytes: int | None = None, total_bytes: int | None = None) -> Packet:
    """One line about work that has no tokens yet; a bar is shown where `total_bytes` is known."""
    return {
        "error": "",
        "progress": {"sentence": sentence, "done_bytes": done_bytes, "total_bytes": total_bytes},
    }


def cost_packet(run: str, events: int, decode: Phase, device: Device) -> Packet:
    """What decode waited for in a run that ended after so many events: estimated from measured rates and
    the arithmetic of a step."""
    assert decode.cost is not None and decode.verdict is not None
    return {
        "run": run,
        "first": events,
        "events": [],
        "cost": {
            "run": run,
            "limit": decode.verdict.limit,
            "share": decode.verdict.share,
            "read_bytes": decode.cost.bytes,
            "floor_seconds": decode.verdict.floor_seconds,
            "step_seconds": decode.forward_seconds,
            "bytes_per_second": device.bytes_per_second,
            "flops_per_second": device.flops_per_second,
        },
    }


def ready_packet(facts: ModelFacts, suggests: bool = False) -> Packet:
    """The model that answers now: what the chip shows, and whether it brings settings of its own."""
    return {
        "suggests": suggests,
        "progress": None,
        "model": {
            "name": facts.name,
            "revision": facts.revision,
            "device": facts.device,
            "device_name": facts.device_name,
            "dtype": facts.weights or facts.dtype,
        },
    }


def wire(packet: Packet, seq: int) -> str:
    """The packet as strict ASCII JSON: half a character pair survives, no two are equal, and none holds a tag."""
    return json.dumps({"seq": seq, **packet}, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
