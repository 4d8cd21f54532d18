"""Benchmarks as ratios: every contender runs once a round, rounds are interleaved, medians are kept.

Absolute figures belong to the machine named beside them; the ratios travel. Knows the engine and
transformers' own `generate`, and nothing of the page.
"""

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import TextIteratorStreamer

from playground.core.decoding import GREEDY, Decoding
from playground.core.draws import uniform
from playground.core.request import Request
from playground.engine.cache import forward, new_cache
from playground.engine.choice import pick, survive
from playground.engine.decode import stream
from playground.engine.load import load_model
from playground.engine.model import LoadedModel
from playground.engine.pipeline import build

PROMPT = "The sea is"
SAMPLED = Decoding(temperature=0.7, top_p=0.9, seed=1)


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to make `tokens` tokens from the prompt."""

    name: str
    run: Callable[[], None]
    tokens: int


@dataclass(frozen=True, slots=True)
class Result:
    """Median rate over `n` rounds, and the median of the rounds' ratios to the reference."""

    name: str
    tokens_per_second: float
    ratio: float
    n: int


def contenders(model: LoadedModel, decoding: Decoding, tokens: int) -> list[Contender]:
    """The same model, dtype, prompt and settings, five ways; the reference stands first."""
    ids = tuple(model.tokenizer(PROMPT)["input_ids"])
    mode = "greedy" if decoding.greedy else "sampled"
    ours = Request(prompt_ids=ids, lanes=(replace(decoding, max_new_tokens=tokens),))
    four = replace(ours, lanes=tuple(replace(ours.lanes[0], seed=seed) for seed in range(4)))
    return [
        Contender(
            f"generate + TextIteratorStreamer, {mode}",
            lambda: _streamed(model, ids, decoding, tokens),
            tokens,
        ),
        Contender(f"generate, {mode}", lambda: _generate(model, ids, decoding, tokens), tokens),
        Contender(f"own loop without telemetry, {mode}", lambda: _bare(model, ids, decoding, tokens), tokens),
        Contender(f"own loop, full telemetry, {mode}", lambda: _drain(stream(model, ours)), tokens),
        Contender(f"four lanes in one batch, {mode}", lambda: _drain(stream(model, four)), 4 * tokens),
    ]


def measure(entrants: list[Contender], rounds: int) -> list[Result]:
    """Run every contender once a round, after one round that warms up and is not counted."""
    rates: list[list[float]] = []
    for round_ in range(rounds + 1):
        rates.append([contender.tokens / _seconds(contender.run) for contender in entrants])
        _say(f"round {round_} of {rounds}" + (" (warm-up, not counted)" if not round_ else ""))
    counted = rates[1:]
    return [
        Result(
            contender.name,
            round(median(row[i] for row in counted), 2),
            round(median(row[i] / row[0] for row in counted), 3),
            rounds,
        )
        for i, contender in enumerate(entrants)
    ]


def main(
    model: str | None = None, device: str = "auto", dtype: str = "auto", rounds: int = 5, tokens: int = 48
) -> None:
    """Measure, print a table, and print the results as JSON on the last line."""
    loaded = load_model(model, device=device, dtype=dtype)
    loaded.stop_ids = frozenset()  # every contender makes the same number of tokens
    facts = loaded.facts
    machine = (
        f"{facts.device_name or facts.device}, torch {torch.__version__}, {torch.get_num_threads()} threads"
    )
    _say(f"{facts.name}, {facts.dtype}, {machine}")
    results = []
    for decoding in (GREEDY, SAMPLED):
        results += measure(contenders(loaded, decoding, tokens), rounds)
    Console().print(_table(results))
    rows = [
        {"name": r.name, "tokens_per_second": r.tokens_per_second, "ratio": r.ratio, "n": r.n}
        for r in results
    ]
    print(json.dumps({"results": rows, "machine": machine, "model": facts.name, "dtype": facts.dtype}))


def _seconds(run: Callable[[], None]) -> float:
    began = perf_counter()
    run()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return perf_counter() - began


def _drain(events: Iterable[Any]) -> None:
    for _ in events:
        pass


def _options(model: LoadedModel, decoding: Decoding, tokens: int) -> dict[str, Any]:
    options: dict[str, Any] = {"max_new_tokens": tokens, "min_new_tokens": tokens, "pad_token_id": 0}
    if decoding.greedy:
        return options | {"do_sample": False}
    return options | {
        "do_sample": True, "temperature": decoding.temperature, "top_p": decoding.top_p, "top_k": 0,
    }  # fmt: skip


def _generate(model: LoadedModel, ids: tuple[int, ...], decoding: Decoding, tokens: int) -> None:
    prompt = torch.tensor([ids], device=model.device)
    model.module.generate(prompt, attention_mask=torch.ones_like(prompt), **_options(model, decoding, tokens))


def _streamed(model: LoadedModel, ids: tuple[int, ...], decoding: Decoding, tokens: int) -> None:
    streamer = TextIteratorStreamer(model.tokenizer, skip_prompt=True)
    prompt = torch.tensor([ids], device=model.device)
    arguments = {"inputs": prompt, "attention_mask": torch.ones_like(prompt), "streamer": streamer}
    options = arguments | _options(model, decoding, tokens)
    worker = threading.Thread(target=model.module.generate, kwargs=options)
    worker.start()
    _drain(streamer)
    worker.join()


@torch.inference_mode()
def _bare(model: LoadedModel, ids: tuple[int, ...], decoding: Decoding, tokens: int) -> None:
    """The decode loop with the same forward, stages and draw, and no record of anything."""
    cache, chosen, stages = new_cache(model.module), list(ids), build(decoding, len(ids))
    batch = torch.tensor([ids], device=model.device)
    for step in range(tokens):
        scores = forward(model.module, batch, cache)
        for stage in stages:
            scores = stage.apply(batch, scores)
        token = scores[0].argmax() if decoding.greedy else pick(survive(scores[0]), uniform(1, step))
        chosen.append(int(token))
        batch = token.reshape(1, 1)


def _table(results: list[Result]) -> Table:
    table = Table("contender", "tokens / s", "ratio", "rounds", box=None, header_style="dim")
    for result in results:
        table.add_row(result.name, f"{result.tokens_per_second:.1f}", f"{result.ratio:.2f}", str(result.n))
    return table


def _say(line: str) -> None:
    Console(stderr=True, highlight=False).print(line, style="dim")
