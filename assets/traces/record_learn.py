"""Records the traces of the tab Learn from real runs of the default model: fp32, on a CPU.

    python assets/traces/record_learn.py

Their timings are shown, so run it on a quiet machine: the main run is made many times and the fastest kept,
since anything slower was disturbed. Tokens and probabilities are the same in all.
"""

import json
from dataclasses import replace
from pathlib import Path

from playground import Decoding, Request, dump_trace, fold, load_model, stream
from playground.core.decoding import GREEDY
from playground.core.lesson import lesson_request, temperatures_request
from playground.core.run import Run
from playground.core.scoring import scoring_report
from playground.engine.model import LoadedModel
from playground.engine.score import score

HERE = Path(__file__).parent / "learn"
TRIES = 15
PROMPT = "What is gravity?"
PIECES = ("gravity", " gravity", "Gravity", "unbelievably", "😊")

STEADY = replace(GREEDY, max_new_tokens=40, name="greedy")
WARM = Decoding(temperature=1.0, top_p=1.0, seed=3, max_new_tokens=40)
LANES = (
    STEADY,
    replace(WARM, temperature=0.4, name="temperature_low"),
    replace(WARM, top_k=10, name="top_k"),
    replace(WARM, top_p=0.9, name="top_p"),
    replace(WARM, temperature=1.4, name="temperature_high"),
)
FACTUAL = Request(
    "What is the capital of France?",
    tuple(replace(lane, seed=5) for lane in LANES),
    top_n=7,
    run="learn-factual",
)
CREATIVE = Request(
    "Write the first sentence of a story about a lighthouse.", LANES, top_n=7, run="learn-creative"
)
MYSTERY = Request(
    "Question: What is gravity?\nAnswer:", (replace(STEADY, max_new_tokens=60),), chat=False, top_n=3,
    run="learn-mystery",
)  # fmt: skip


def fastest(model: LoadedModel, request: Request) -> Run:
    """The fastest of several runs of `request`."""
    runs = [fold(stream(model, request)) for _ in range(TRIES)]
    return min(runs, key=lambda run: max(lane.steps[-1].end_seconds for lane in run.lanes))


def pieces(model: LoadedModel) -> list[Run]:
    """Runs of one token, of which the prompts are looked at."""
    one = replace(GREEDY, max_new_tokens=1)
    requests = [
        Request(text, (one,), chat=False, top_n=1, run=f"learn-piece-{n}") for n, text in enumerate(PIECES)
    ]
    return [fold(stream(model, request)) for request in requests]


def main() -> None:
    """Record everything."""
    HERE.mkdir(exist_ok=True)
    model = load_model(device="cpu", dtype="float32")
    fold(stream(model, lesson_request(PROMPT)))  # pays the one-time work
    run = fastest(model, replace(lesson_request(PROMPT), run="learn-main"))
    several = replace(temperatures_request(run.prompt_ids), run="learn-temperatures")
    kept = {"main": [run], "temperatures": [fold(stream(model, several))], "pieces": pieces(model)}
    for name, request in (("factual", FACTUAL), ("creative", CREATIVE), ("mystery", MYSTERY)):
        kept[name] = [fold(stream(model, request))]
    for name, runs in kept.items():
        dump_trace(runs, HERE / f"{name}.jsonl")
        print(f"{name}.jsonl: {(HERE / f'{name}.jsonl').stat().st_size:,} bytes")
        for each in runs:
            for lane in each.lanes:
                print(f"  {len(lane.steps)} tokens, {lane.finish_reason}, {lane.text!r}")
    told = scoring_report(score(model, Request(prompt_ids=tuple(run.prompt_ids)), None, top=3))
    (HERE / "score.json").write_text(json.dumps(told, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
