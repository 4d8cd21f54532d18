"""Benchmarks as ratios: every contender runs once a round, rounds are interleaved, medians are kept.

Absolute figures belong to the machine named beside them; the ratios travel. Knows nothing of the
page.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median

from rich.console import Console
from rich.table import Table

from playground.bench.workers import Choice, Worker


@dataclass(frozen=True, slots=True)
class Result:
    """Median rate over `n` rounds, and the median of the rounds' ratios to the contender `against`."""

    name: str
    tokens_per_second: float
    ratio: float
    n: int
    against: str


def main(
    model: str | None = None, device: str = "auto", dtype: str = "auto", rounds: int = 5, tokens: int = 48
) -> None:
    """Measure, print a table, and print the results as JSON on the last line."""
    from playground.bench.contenders import CONTENDERS, SETTINGS

    results: list[Result] = []
    with ExitStack() as stack:
        workers = []
        for way in CONTENDERS:
            _say(f"loading for “{way}”")
            workers.append(Worker(way, Choice(model, device, dtype)))
            stack.callback(workers[-1].close)
        facts, threads = workers[0].facts, workers[0].threads
        for settings in SETTINGS:
            rates = measure(workers, settings, rounds, tokens)
            results += summary({name: it.against for name, it in CONTENDERS.items()}, settings, rates)
    machine = f"{facts.device_name or facts.device}, {threads} threads"
    _say(f"{facts.name}, {facts.dtype}, {machine}")
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


def measure(workers: Sequence[Worker], settings: str, rounds: int, tokens: int) -> list[list[float]]:
    """Tokens a second (rounds, workers), after one round that warms up and is not counted."""
    rates: list[list[float]] = []
    for number in range(rounds + 1):
        _say(f"{settings}, round {number} of {rounds}" + ("" if number else " (warm-up, not counted)"))
        rates.append([worker.rate(settings, tokens) for worker in workers])
    return rates[1:]


def summary(against: Mapping[str, str], settings: str, rates: Sequence[Sequence[float]]) -> list[Result]:
    """Medians over the rounds of `rates` (rounds, contenders); ratios are taken within each round.

    `against` maps each contender, in order, to the one that its ratio refers to.
    """
    place = {name: i for i, name in enumerate(against)}
    return [
        Result(
            f"{name}, {settings}",
            round(median(row[place[name]] for row in rates), 2),
            round(median(row[place[name]] / row[place[other]] for row in rates), 3),
            len(rates),
            other,
        )
        for name, other in against.items()
    ]


def table(results: Sequence[Result]) -> Table:
    """The results for a terminal."""
    shown = Table("contender", "tokens / s", "ratio", "to", "rounds", box=None, header_style="dim")
    for result in results:
        shown.add_row(
            result.name,
            f"{result.tokens_per_second:.1f}",
            f"{result.ratio:.2f}",
            result.against,
            str(result.n),
        )
    return shown


def _say(line: str) -> None:
    Console(stderr=True, highlight=False).print(line, style="dim")
