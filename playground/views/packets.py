"""What the server sends to the stage: one JSON object with only what is new.

A packet names its run and where in the run its events begin, so that a gap is seen and asked for
again. Pure: knows no gradio and no clock.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from playground.core.codec import encode
from playground.core.events import Event
from playground.core.request import ModelFacts

Packet = dict[str, Any]


def events_packet(run: str, first: int, events: Iterable[Event], *, label: str = "") -> Packet:
    """Events of `run` in order; `first` is the index of the first of them in the run."""
    return {"run": run, "first": first, "events": [encode(e) for e in events], "label": label}


def recorded_packet(events: Sequence[Event]) -> Packet:
    """A whole recorded run, shown before anybody has pressed Generate."""
    return events_packet(events[0].run, 0, events, label="recorded")


def error_packet(message: str) -> Packet:
    """One sentence in the place where the result would be; the finished run stays."""
    return {"error": message, "progress": None}


def progress_packet(sentence: str, done_bytes: int | None = None, total_bytes: int | None = None) -> Packet:
    """One line about work that has no tokens yet; a bar is shown where `total_bytes` is known."""
    return {
        "error": "",
        "progress": {"sentence": sentence, "done_bytes": done_bytes, "total_bytes": total_bytes},
    }


def ready_packet(facts: ModelFacts, suggests: bool = False) -> Packet:
    """The model that answers now: what the chip shows, and whether it brings settings of its own."""
    return {
        "suggests": suggests,
        "progress": None,
        "model": {
            "name": facts.name,
            "device": facts.device,
            "device_name": facts.device_name,
            "dtype": facts.dtype,
        },
    }


def wire(packet: Packet, seq: int) -> str:
    """The packet as strict ASCII JSON: half a character pair survives, and no two are equal."""
    return json.dumps({"seq": seq, **packet}, allow_nan=False, separators=(",", ":"))
