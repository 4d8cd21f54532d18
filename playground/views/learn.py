"""What the tab Learn is sent: recorded runs with the numbers told of them, and the arithmetic beside them.

Everything that a chapter shows stands in these packets; the browser formats and draws. Pure: knows no gradio
and no file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from playground.core.codec import encode
from playground.core.cost import Device
from playground.core.decoding import Decoding, describe
from playground.core.lesson import (
    cache_bytes,
    decode_ceiling,
    forwards,
    prefill_pairs,
    run_facts,
    saved_work,
)
from playground.core.metrics import mean_surprisal_bits
from playground.core.run import Run
from playground.core.softmax import softmax_table
from playground.views.packets import Packet

SAVED_LENGTHS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 30, 50, 100, 200, 500, 1000)
PROMPT_LENGTHS = (4, 50, 1000, 32_000, 128_000)
CACHE_TOKENS = (1, 4096, 128_000)
USERS = (1, 32)
EXAMPLE = (100, 500)
"""Prompt and answer of an ordinary chat."""


@dataclass(frozen=True, slots=True)
class Known:
    """A model and a device that the arithmetic is told with: names, config, published figures."""

    model: str
    config: Mapping[str, Any]
    parameters: int
    device_name: str
    device: Device


def lesson_packet(
    recorded: Mapping[str, Run], pieces: Sequence[Run], score: Mapping[str, Any], known: Known,
    settings: Mapping[str, Decoding],
) -> Packet:  # fmt: skip
    """All recorded material: `main` is the run of most chapters, `temperatures` one step of it at several.

    `pieces` are runs of which only the prompts' tokens are looked at, `score` is the report on main's prompt,
    `settings` are presets by name.
    """
    return {
        "lesson": {
            "runs": {name: _events(run) for name, run in recorded.items()},
            "facts": run_facts(recorded["main"]),
            "softmax": softmax(recorded["temperatures"]),
            "means": {name: _means(run) for name, run in recorded.items()},
            "score": _scored(score),
            "pieces": [_piece(run) for run in pieces],
            "saved": saved_work(SAVED_LENGTHS),
            "pairs": prefill_pairs(PROMPT_LENGTHS),
            "example": forwards(*EXAMPLE),
            "cache": cache_bytes(known.config, known.parameters, CACHE_TOKENS, USERS) | {"model": known.model},
            "ceiling": decode_ceiling(known.config, known.parameters, known.device)
            | {"device": known.device_name},
            "settings": {name: _settings(decoding) for name, decoding in settings.items()},
        }
    }  # fmt: skip


def facts_packet(run: Run) -> Packet:
    """What is told of the reader's own run, once it has ended."""
    return {"facts": run_facts(run) | {"run": run.id}}


def softmax_packet(run: Run, of: str) -> Packet:
    """The first step of the reader's own run `of` at several temperatures."""
    return {"softmax": softmax(run) | {"run": of}}


def score_packet(score: Mapping[str, Any], of: str) -> Packet:
    """How probable the model found the reader's own prompt, position by position."""
    return {"score": _scored(score) | {"run": of}}


def softmax(run: Run) -> dict[str, Any]:
    """One table a lane, of its first step."""
    lanes = [(lane.decoding, lane.steps[0]) for lane in run.lanes if lane.steps]
    tables = [
        softmax_table(step, 0.0 if decoding.greedy else decoding.temperature) for decoding, step in lanes
    ]
    return {"tables": [asdict(table) for table in tables]}


def _events(run: Run) -> list[dict[str, Any]]:
    return [encode(event) for event in run.events]


def _piece(run: Run) -> dict[str, Any]:
    assert run.started is not None
    return {"text": run.started.request.prompt, "tokens": encode(run.started)["prompt"]}


def _settings(decoding: Decoding) -> dict[str, Any]:
    """A preset in words, the values that a learner turns, and which of them act."""
    values = {name: getattr(decoding, name) for name in ("temperature", "top_k", "top_p", "min_p")}
    return values | {"text": describe(decoding), "active": list(_acting(decoding))}


def _acting(decoding: Decoding) -> tuple[str, ...]:
    """Temperature 1 divides by 1: it stands there to be seen, though no stage has to act."""
    return ("temperature", *(stage for stage in decoding.active_stages() if stage != "temperature"))


def _means(run: Run) -> list[float | None]:
    """Mean surprisal of each lane, in bits a token."""
    return [mean_surprisal_bits(lane) for lane in run.lanes]


def _scored(score: Mapping[str, Any]) -> dict[str, Any]:
    names = ("id", "text", "bytes", "special", "rank", "probability", "surprisal_bits", "entropy_bits")
    tokens = [
        {name: token[name] for name in names} | {"expected": token["expected"][:3]}
        for token in score["tokens"]
    ]
    return {"tokens": tokens, "bits": score["surprisal_bits"]}
