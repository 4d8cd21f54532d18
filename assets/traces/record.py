"""Records the traces in this folder from real runs of the default model: fp32, on a CPU.

    python assets/traces/record.py [NAME ...]

Their timings are shown on the page, so run it on a quiet machine: each run is made five times and
the fastest kept, since anything slower was disturbed. Tokens and probabilities are the same in all.
The settings of `playground` and `compare` are those with which the page opens, so that pressing Generate
gives more of the same. The others teach one thing each, which `tests/core/test_recorded.py` holds them
to; titles and lessons stand in `assets/i18n` by the file's name.
"""

import sys
from dataclasses import replace
from pathlib import Path

from playground import Decoding, Request, dump_trace, fold, load_model, race, stream
from playground.core.decoding import GREEDY
from playground.core.race import Race, follow
from playground.core.record import Record, runs_of
from playground.core.run import Run, advance
from playground.engine.inspection import prompt_read
from playground.engine.model import LoadedModel

HERE = Path(__file__).parent
TRIES = 5

REQUESTS = {
    "playground": Request(
        "What is gravity? Answer in two sentences.",
        (Decoding(seed=5, max_new_tokens=64),),
        top_n=12,
        run="recorded-gravity",
    ),
    "compare": Request(
        "Write one sentence about the sea.",
        (
            replace(GREEDY, max_new_tokens=48, name="Greedy"),
            Decoding(temperature=0.7, top_p=0.9, seed=5, max_new_tokens=48, name="Balanced"),
            Decoding(temperature=1.0, top_p=1.0, min_p=0.05, seed=5, max_new_tokens=48, name="Creative"),
            Decoding(temperature=1.4, top_p=1.0, seed=5, max_new_tokens=48, name="Wild"),
        ),
        top_n=12,
        run="recorded-sea",
    ),
    "rare": Request(
        "Why is the sky blue? Answer in one sentence.",
        (Decoding(temperature=0.8, seed=10, max_new_tokens=48),),
        top_n=12,
        run="recorded-rare",
    ),
    "emoji": Request(
        "Write a happy birthday message with emojis 🎂🎉",
        (replace(GREEDY, max_new_tokens=12),),
        top_n=12,
        run="recorded-emoji",
    ),
    "stop": Request(
        "Question: What is gravity?\nAnswer:",
        (replace(GREEDY, max_new_tokens=48, stop=("each other",)),),
        chat=False,
        top_n=12,
        run="recorded-stop",
    ),
    "loop": Request(
        "We went to the market and",
        (replace(GREEDY, max_new_tokens=72),),
        chat=False,
        top_n=12,
        run="recorded-loop",
    ),
}
READ = ("playground",)
"""Runs whose prompt is read once more after them, for what the model expected there."""

RACE = Request("What is gravity?", (replace(GREEDY, max_new_tokens=64),), top_n=1, run="recorded-race")


def record(model: LoadedModel, name: str) -> Record:
    """The fastest of several runs, or races, of that name."""
    tries = [_race(model) if name == "race" else fold(stream(model, REQUESTS[name])) for _ in range(TRIES)]
    fastest = min(tries, key=_seconds)
    if name in READ and isinstance(fastest, Run):
        advance(fastest, prompt_read(model, fastest))
    return fastest


def _race(model: LoadedModel) -> Race:
    found = Race()
    for item in race(model, RACE):
        follow(found, item)
    return found


def _seconds(record: Record) -> float:
    return sum(lane.steps[-1].end_seconds for run in runs_of(record) for lane in run.lanes)


def main(names: list[str]) -> None:
    """Record the traces of these names, or all."""
    model = load_model(device="cpu", dtype="float32")
    fold(stream(model, REQUESTS["playground"]))  # pays the one-time work
    for name in names or [*REQUESTS, "race"]:
        found, path = record(model, name), HERE / f"{name}.jsonl"
        dump_trace(found, path)
        print(f"{path.name}: {path.stat().st_size:,} bytes")
        for lane in (lane for run in runs_of(found) for lane in run.lanes):
            print(f"  {len(lane.steps)} tokens, {lane.finish_reason}, {lane.text!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
