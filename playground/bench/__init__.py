"""Benchmarks as ratios: every contender runs once a round, rounds are interleaved, medians are kept.

Absolute figures belong to the machine named beside them; the ratios travel. Knows nothing of the
page.
"""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from playground.bench.workers import Choice, Worker


@dataclass(frozen=True, slots=True)
class Result:
    """Median rate over `n` rounds, and the median of the rounds' ratios to the reference."""

    name: str
    tokens_per_second: float
    ratio: float
    n: int


def main(
    model: str | None = None, device: str = "auto", dtype: str = "auto", rounds: int = 5, tokens: int = 48
) -> None:
    """Measure, print a table, and print the results as JSON on the last line."""
    from playground.bench.contenders import SETTINGS, WAYS

    results: list[Result] = []
    with ExitStack() as stack:
        workers = []
        for way in WAYS:
            _say(f"loading for “{way}”")
            workers.append(Worker(way, Choice(model, device, dtype)))
            stack.callback(workers[-1].close)
        facts, threads = workers[0].facts, workers[0].threads
        counts = [count for _, count in WAYS.values()]
        for settings in SETTINGS:
            results += measure(workers, counts, settings, rounds, tokens)
    machine = f"{facts.device_name or facts.device}, {threads} threads"
    _say(f"{facts.name}, {facts.dtype}, {machine}; ratios to the first line of each group")
    Console().print(table(results))
    print(
        json.dumps(
            {
                "results": [asdict(r) for r in results],
                "machine": machine,
                "model": facts.name,
                "dtype": facts.dtype,
            }
        )
    )


def measure(
    workers: Sequence[Worker], counts: Sequence[int], settings: str, rounds: int, tokens: int
) -> list[Result]:
    """Run every worker once a round, after one round that warms up and is not counted."""
    rates: list[list[float]] = []
    for number in range(rounds + 1):
        _say(f"{settings}, round {number} of {rounds}" + ("" if number else " (warm-up, not counted)"))
        seconds = [worker.seconds(settings, tokens) for worker in workers]
        rates.append([count * tokens / s for count, s in zip(counts, seconds, strict=True)])
    return summary([f"{worker.way}, {settings}" for worker in workers], rates[1:])


def summary(names: Sequence[str], rates: Sequence[Sequence[float]]) -> list[Result]:
    """Medians over the rounds of `rates` (rounds, contenders); ratios are taken within each round."""
    return [
        Result(
            name,
            round(median(row[i] for row in rates), 2),
            round(median(row[i] / row[0] for row in rates), 3),
            len(rates),
        )
        for i, name in enumerate(names)
    ]


def table(results: Sequence[Result]) -> Table:
    """The results for a terminal."""
    shown = Table("contender", "tokens / s", "ratio", "rounds", box=None, header_style="dim")
    for result in results:
        shown.add_row(result.name, f"{result.tokens_per_second:.1f}", f"{result.ratio:.2f}", str(result.n))
    return shown


def _say(line: str) -> None:
    Console(stderr=True, highlight=False).print(line, style="dim")
