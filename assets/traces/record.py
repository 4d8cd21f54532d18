"""Records the traces in this folder from real runs of the default model: fp32, on a CPU.

    python assets/traces/record.py

Their timings are shown on the page, so run it on a quiet machine: each run is made five times and
the fastest kept, since anything slower was disturbed. Tokens and probabilities are the same in all.
The settings are those with which the page opens, so that pressing Generate gives more of the same.
"""

from dataclasses import replace
from pathlib import Path

from playground import Decoding, Request, dump_trace, fold, load_model, stream
from playground.core.decoding import GREEDY
from playground.core.run import Run
from playground.engine.model import LoadedModel

HERE = Path(__file__).parent
TRIES = 5

PLAYGROUND = Request(
    "What is gravity? Answer in two sentences.",
    (Decoding(seed=5, max_new_tokens=64),),
    top_n=12,
    run="recorded-gravity",
)
COMPARE = Request(
    "Write one sentence about the sea.",
    (
        replace(GREEDY, max_new_tokens=48, name="Greedy"),
        Decoding(temperature=0.7, top_p=0.9, seed=5, max_new_tokens=48, name="Balanced"),
        Decoding(temperature=1.0, top_p=1.0, min_p=0.05, seed=5, max_new_tokens=48, name="Creative"),
        Decoding(temperature=1.4, top_p=1.0, seed=5, max_new_tokens=48, name="Wild"),
    ),
    top_n=12,
    run="recorded-sea",
)


def record(model: LoadedModel, request: Request) -> Run:
    """The fastest of several runs of `request`."""
    runs = [fold(stream(model, request)) for _ in range(TRIES)]
    return min(runs, key=lambda run: max(lane.steps[-1].end_seconds for lane in run.lanes))


def main() -> None:
    """Record both traces."""
    model = load_model(device="cpu", dtype="float32")
    fold(stream(model, PLAYGROUND))  # pays the one-time work
    for request, name in ((PLAYGROUND, "playground.jsonl"), (COMPARE, "compare.jsonl")):
        run = record(model, request)
        dump_trace(run, HERE / name)
        print(f"{name}: {(HERE / name).stat().st_size:,} bytes")
        for lane in run.lanes:
            print(f"  {len(lane.steps)} tokens, {lane.finish_reason}, {lane.text!r}")


if __name__ == "__main__":
    main()
