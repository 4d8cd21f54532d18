"""Is the engine right and fast on this GPU? One script for a machine that has one, of at most eight minutes.

    python -m tests.gpu.check [--device cuda] [--shape llama-3.2-1b --shape llama-3.1-8b] [--json FILE]

Needs torch, transformers and this source tree: weights are drawn, nothing is fetched. Of the first shape, in
float32: the ids of `generate`, and of each lane alone as among others. Of every shape, in bfloat16: tokens a second
of one, four and eight lanes with everything recorded, of the loop without records and of `generate`, interleaved,
and the share of the bandwidth measured here. The last line is JSON; it exits with 1 where ids differ.
"""

import argparse
import json
import sys
from dataclasses import asdict, replace
from functools import partial
from time import monotonic
from typing import Any

import torch

from playground.bench import measure, summary
from playground.bench.contenders import (
    PLAIN,
    STREAMED,
    Contender,
    Task,
    bare,
    generated,
    lanes,
    recorded,
    streamed,
)
from playground.bench.sections import BARE, OWN, Section, ceiling
from playground.core.decoding import GREEDY, Decoding
from playground.core.events import Stepped
from playground.core.request import Request
from playground.engine.decode import stream
from playground.engine.drawn import drawn_model
from playground.engine.model import LoadedModel

SHAPES = ("llama-3.2-1b", "llama-3.1-8b")
PROMPT = tuple(range(11, 43))
LANES = (1, 4, 8)
SECONDS_LIMIT = 480


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, check and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument(
        "--shape", action="append", help="a name of the catalog or a config.json; may be repeated"
    )
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the result into this file")
    given = parser.parse_args(arguments)
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        print("There is no CUDA device here, so nothing was checked.", file=sys.stderr)
        return 2
    found = checked(given.device, given.shape or SHAPES, given.tokens, given.rounds)
    print(json.dumps(found))
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
    return 0 if all(found["parity"].values()) else 1


def checked(device: str, shapes: Any, tokens: int, rounds: int) -> dict[str, Any]:
    """Parity of the first shape, then the speed of each, as long as there is time."""
    began, results = monotonic(), []
    same = parity(drawn_model(shapes[0], device=device, dtype="float32"), min(tokens, 48))
    model = None
    for shape in shapes:
        if monotonic() - began > SECONDS_LIMIT / 2:
            results.append({"shape": shape, "left_out": "no time was left"})
            continue
        del model
        if device.startswith("cuda"):
            torch.cuda.empty_cache()
        model = drawn_model(shape, device=device, dtype="bfloat16")
        rows = [
            asdict(row)
            for section in sections(model, tokens)
            for row in summary(section, measure(section, model, rounds))
        ]
        results.append({"shape": shape, "weights_bytes": model.facts.weights_bytes, "rows": rows})
    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else device
    return {
        "device": name,
        "torch": torch.__version__,
        "parity": same,
        "speed": results,
        "seconds": monotonic() - began,
    }


def parity(model: LoadedModel, tokens: int) -> dict[str, bool]:
    """Whether the ids are those of `generate`, and each lane's alone as among others."""
    greedy = replace(GREEDY, max_new_tokens=tokens)
    three = (greedy, *(Decoding(seed=seed, max_new_tokens=tokens) for seed in (1, 2)))
    together = _ids(model, three)
    prompt = torch.tensor([PROMPT], device=model.device)
    made = model.turns.take(
        lambda: model.module.generate(
            inputs=prompt,
            attention_mask=torch.ones_like(prompt),
            do_sample=False,
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            pad_token_id=0,
        )
    )
    return {
        "generate": made[0, len(PROMPT) :].tolist() == _ids(model, (greedy,))[0],
        "lanes_alone": all(_ids(model, (lane,))[0] == ids for lane, ids in zip(three, together, strict=True)),
        "lean_step": model.lean_step is not None,
    }


def sections(model: LoadedModel, tokens: int) -> list[Section]:
    """Greedy: the peers and one lane; then several lanes against as many single ones."""
    task = Task(PROMPT, GREEDY, tokens)
    top = ceiling(model, task)
    own = (PLAIN, STREAMED, BARE, *top)
    peers = {
        STREAMED: Contender(streamed), PLAIN: Contender(generated), **top, BARE: Contender(bare),
        OWN: Contender(recorded, against=own),
    }  # fmt: skip
    several = {
        f"{count} lanes": Contender(partial(lanes, count=count), count, against=("1 lanes",))
        for count in LANES
    }
    return [Section("greedy", task, peers), Section("greedy", task, several)]


def _ids(model: LoadedModel, wanted: tuple[Decoding, ...]) -> list[list[int]]:
    ids: list[list[int]] = [[] for _ in wanted]
    for event in stream(model, Request(prompt_ids=PROMPT, lanes=wanted)):
        if isinstance(event, Stepped):
            ids[event.lane].append(event.token.id)
    return ids


if __name__ == "__main__":
    sys.exit(main())
