"""The draw held while the temperature slides: what the page works out from a record, against the engine's own stages.

The engine has all logits, the page the record's twenty candidates: where it calls itself certain it must
agree, and where nothing hides what it needs it must be certain.
"""

import math
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

import pytest

from playground.core.decoding import Decoding
from playground.core.stages import ORDERS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.browser

VOCABULARY, RECORDED, PROMPT = 400, 20, (3, 5, 7, 11, 13)
GRID = [0.1, 0.35, 0.6, 0.7, 0.85, 1.0, 1.15, 1.4, 1.7, 2.0]
CHAINS = {
    "plain": Decoding(temperature=0.7, top_p=1.0),
    "as it comes": Decoding(temperature=1.0, top_p=1.0),
    "nucleus": Decoding(temperature=0.7, top_p=0.9),
    "few": Decoding(temperature=0.9, top_k=8, top_p=0.95),
    "floor": Decoding(temperature=0.8, top_p=1.0, min_p=0.05),
    "many": Decoding(temperature=1.2, top_k=60, top_p=1.0),
    "penalty": Decoding(temperature=0.7, top_p=0.9, repetition_penalty=1.3),
    "filters first": Decoding(temperature=0.7, top_k=12, top_p=0.9, order=ORDERS["llama.cpp"]),
    "typical": Decoding(temperature=0.7, top_p=1.0, typical_p=0.9),
    "a ban": Decoding(temperature=0.7, top_p=0.9, banned=(17, 33, 258)),
    "a favour": Decoding(temperature=0.7, top_k=10, bias=((33, 2.0), (91, -4.0))),
}  # fmt: skip
MUST_BE_CERTAIN = {
    "few": 1.0,
    "nucleus": 0.6,
    "floor": 0.5,
    "filters first": 1.0,
    "plain": 0.5,
    "as it comes": 0.5,
}


def logits(seed: int, scale: float = 3.0) -> Any:
    return torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed)) * scale


def picked(raw: Any, decoding: Decoding, draw: float) -> int:
    """The token that the engine's own stages and its own draw choose."""
    from playground.engine.draw import pick, survive
    from playground.engine.pipeline import build, walk

    stages = list(walk(raw, torch.tensor(PROMPT), build(decoding, len(PROMPT))))
    scores = stages[-1][1] if stages else raw
    return int(scores.argmax()) if decoding.greedy else int(pick(survive(scores), draw))


def candidate(row: Any) -> list[Any]:
    """A row as a trace has it: nine figures."""
    processed = row.probabilities[-1] if row.probabilities else row.raw_probability
    logprob = float(f"{math.log(row.raw_probability):.9g}")
    return [[row.id, f"t{row.id}"], logprob, float(f"{processed:.9g}"), row.removed_by]


def record(raw: Any, decoding: Decoding, draw: float) -> dict[str, Any]:
    """The step as a trace would have it, of the engine's stages."""
    from playground.engine.waterfall import waterfall

    found = waterfall(raw, PROMPT, decoding, top_n=VOCABULARY)
    rows = sorted(found.rows, key=lambda row: (-row.raw_probability, row.id))
    chosen = picked(raw, decoding, draw)
    shown = [row for i, row in enumerate(rows) if i < RECORDED or row.id == chosen]
    return {
        "token": {"id": chosen},
        "raw_rank": 1 + next(i for i, row in enumerate(rows) if row.id == chosen),
        "candidates": [candidate(row) for row in shown],
        "logsumexp": float(raw.logsumexp(0)),
        "raw_entropy_bits": -sum(r.raw_probability * math.log2(r.raw_probability) for r in rows),
        "kept_mass": found.stages[-1].kept_mass if found.stages else 1.0,
        "draw": draw,
    }


@pytest.fixture(scope="module")
def module(browser: Any, address: str) -> Any:
    """`module(code, argument)`: JavaScript with the modules in scope."""
    page = browser.new_page()
    page.goto(address)
    head = """async (given) => {
      const chain = await import("/assets/stage/chain.js");
      const flips = await import("/assets/stage/flips.js");
      const many = await import("/assets/stage/many_draws.js");
    """
    yield lambda code, given: page.evaluate(head + code + "}", given)
    page.close()


def asked(raw: Any, decoding: Decoding, draw: float) -> dict[str, Any]:
    return {
        "step": record(raw, decoding, draw), "decoding": asdict(decoding), "vocabulary": VOCABULARY,
        "before": list(PROMPT), "draw": draw, "grid": GRID,
    }  # fmt: skip


KNOWN = "const what = (g) => chain.known(g.step, g.decoding, g.vocabulary, new Set(g.before));"


@pytest.mark.parametrize("name", CHAINS)
def test_what_is_certain_is_what_the_engine_would_have_chosen(module: Any, name: str) -> None:
    decoding = CHAINS[name]
    drawn = [logits(seed, scale) for seed, scale in ((1, 3.0), (2, 2.0), (3, 4.5))]
    cases = [(raw, draw) for raw in drawn for draw in (0.07, 0.55, 0.93)]
    answers = module(
        f"{KNOWN} return given.map((g) => g.grid.map((T) => flips.chosenAt(what(g), g.draw, T)));",
        [asked(raw, decoding, draw) for raw, draw in cases],
    )
    certain = 0
    for (raw, draw), found in zip(cases, answers, strict=True):
        for T, answer in zip(GRID, found, strict=True):
            if answer["certain"]:
                certain += 1
                assert answer["id"] == picked(raw, replace(decoding, temperature=T), draw), (name, T, draw)
    share = certain / (len(cases) * len(GRID))
    assert share >= MUST_BE_CERTAIN.get(name, 0.0), share


@pytest.mark.parametrize("name", [name for name in CHAINS if name != "typical"])
def test_a_sharp_flip_lies_where_the_engine_changes_its_mind(module: Any, name: str) -> None:
    decoding, raw, draw = CHAINS[name], logits(2, 3.0), 0.55
    found = module(f"{KNOWN} return flips.stretches(what(given), given.draw, 2);", asked(raw, decoding, draw))
    assert found[0]["from"] == 0 and found[-1]["to"] == 2
    sharp = [(a["id"], b) for a, b in pairwise(found) if b["sharp"]]
    assert sharp or name in ("many", "penalty", "a ban"), found
    for before, stretch in sharp:
        below = replace(decoding, temperature=stretch["low"] - 0.002)
        above = replace(decoding, temperature=stretch["high"] + 0.002)
        if before is not None:
            assert picked(raw, below, draw) == before
        if stretch["id"] is not None and stretch["to"] - stretch["high"] > 0.002:
            assert picked(raw, above, draw) == stretch["id"]


def test_at_the_runs_own_temperature_the_shares_are_those_of_the_record(module: Any) -> None:
    for name in ("plain", "nucleus", "few", "penalty", "filters first"):
        given = asked(logits(4, 3.0), CHAINS[name], 0.4)
        code = f"{KNOWN} return chain.at(what(given), given.decoding.temperature);"
        shares = {part["id"]: part["share"] for part in module(code, given)["parts"]}
        recorded = {c[0][0]: c[2] for c in given["step"]["candidates"] if c[2] > 0}
        assert shares == pytest.approx(recorded, abs=2e-6 if name != "penalty" else 0.05), name


def test_at_temperature_zero_the_best_is_taken(module: Any) -> None:
    raw = logits(5)
    for name in ("plain", "penalty"):
        given = asked(raw, CHAINS[name], 0.99)
        answer = module(f"{KNOWN} return flips.chosenAt(what(given), 0.99, 0);", given)
        assert answer["id"] == picked(raw, replace(CHAINS[name], temperature=0.0), 0.99)


def test_many_draws_follow_their_shares_and_their_seed(module: Any) -> None:
    shares = [0.5, 0.3, 0.15, 0.05]
    code = "return [1, 1, 2].map((seed) => many.tally(given, 20000, seed));"
    one, again, other = module(code, shares)
    assert one == again != other and sum(one) == 20000
    squares = sum((count - 20000 * p) ** 2 / (20000 * p) for count, p in zip(one, shares, strict=True))
    assert squares < 16.3  # chi-squared, 3 degrees of freedom: once in a thousand seeds
    assert module("return many.tally([0.2, 0.3], 50, 3);", None)[1] > 25  # nothing falls out at the end
