"""Benchmarks as ratios: every contender runs once a round, rounds are interleaved, medians are kept.

All contenders share one process, one copy of the weights and the one thread that computes: two processes
with the same code differ by several percent only by where in memory their weights came to lie, which is more
than a record of each step costs. Absolute figures belong to the machine named beside them; the ratios
travel. Knows nothing of the page.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from playground.bench.sections import Section
    from playground.engine.model import LoadedModel

Rates = Mapping[str, float]
"""Tokens a second of each contender in one round."""


@dataclass(frozen=True, slots=True)
class Result:
    """Median rate over `n` rounds; median, lowest and highest of the rounds' ratios to `against`."""

    name: str
    tokens_per_second: float
    ratio: float
    ratio_low: float
    ratio_high: float
    n: int
    against: str


def main(
    model: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    rounds: int = 5,
    tokens: int = 48,
    sections: Sequence[str] = (),
    random_init: str | None = None,
) -> None:
    """Measure the `sections`, those against `generate` where none is named; print a table, and the results as JSON on
    the last line. With `random_init`, a config, the weights are drawn.
    """
    import torch

    from playground.bench.sections import PEERS, SECTIONS

    loaded = _loaded(model, device, dtype, random_init)
    results: list[Result] = []
    for name in sections or PEERS["generate"]:
        for section in SECTIONS[name](loaded, tokens):
            results += summary(section, measure(section, loaded, rounds))
    facts = loaded.facts
    machine = f"{facts.device_name or facts.device}, {torch.get_num_threads()} threads"
    _say(f"{facts.name}, {facts.dtype}, {machine}")
    from rich.console import Console

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


def _loaded(model: str | None, device: str, dtype: str, random_init: str | None) -> "LoadedModel":
    from playground.engine.drawn import drawn_model
    from playground.engine.load import load_model

    _say("loading the model" if random_init is None else f"drawing the weights of {random_init}")
    if random_init is None:
        loaded = load_model(model, device=device, dtype=dtype)
    else:
        loaded = drawn_model(random_init, device=device, dtype=dtype)
    loaded.stop_ids = frozenset()  # everyone makes the same number of tokens
    return loaded


def measure(section: "Section", model: "LoadedModel", rounds: int) -> list[Rates]:
    """Rates of each round, after one that warms up and is not counted; each round begins with the next one."""
    rates: list[Rates] = []
    names = list(section.contenders)
    for number in range(rounds + 1):
        _say(f"{section.name}, round {number} of {rounds}" + ("" if number else " (warm-up, not counted)"))
        first = number % len(names)
        rates.append({name: section.rate(name, model) for name in names[first:] + names[:first]})
    return rates[1:]


def summary(section: "Section", rates: Sequence[Rates]) -> list[Result]:
    """Medians over the rounds; ratios are taken within each round, one result for each that they refer to."""
    return [
        _result(f"{name}, {section.name}", name, other, rates)
        for name, contender in section.contenders.items()
        for other in contender.against
    ]


def _result(title: str, name: str, other: str, rates: Sequence[Rates]) -> Result:
    ratios = [row[name] / row[other] for row in rates]
    return Result(
        title,
        round(median(row[name] for row in rates), 2),
        round(median(ratios), 3),
        round(min(ratios), 3),
        round(max(ratios), 3),
        len(rates),
        other,
    )


def table(results: Sequence[Result]) -> "Table":
    """The results for a terminal."""
    from rich.table import Table

    shown = Table(
        "contender", "tokens / s", "ratio", "lowest", "highest", "to", "rounds", box=None, header_style="dim"
    )
    for result in results:
        ratios = (f"{ratio:.2f}" for ratio in (result.ratio, result.ratio_low, result.ratio_high))
        shown.add_row(result.name, f"{result.tokens_per_second:.1f}", *ratios, result.against, str(result.n))
    return shown


def _say(line: str) -> None:
    try:
        from rich.console import Console
    except ImportError:  # on a GPU box with torch and transformers alone
        return
    Console(stderr=True, highlight=False).print(line, style="dim")
