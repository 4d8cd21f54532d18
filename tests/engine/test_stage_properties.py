"""Every stage against transformers' own warper, on random rows, ties, -inf, extreme settings, 16-bit logits.

Own filters are compared in fp64, in which transformers' cumulated masses are exact enough to be a
reference; in fp32 theirs differ from themselves by the order of a sum.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from transformers.generation import logits_process as theirs

from playground.core.decoding import Decoding
from playground.core.stages import ORDERS
from playground.engine.filters import TopP, TypicalP
from playground.engine.pipeline import build, walk

OFF = dict(temperature=1.0, top_p=1.0)
IDS = torch.tensor([1, 1, 5, 2])
SIZES = [2, 3, 50, 1024, 4097, 9000]
SHARES = [0.0, 1e-8, 1e-4, 0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999]
TEMPERATURES = [1e-3, 0.05, 0.7, 1.4, 10.0, 100.0]


def row_of(seed: int, size: int, scale: float, kind: str) -> torch.Tensor:
    """Logits (size,) in fp32, as they come from a model of the given kind."""
    source = torch.Generator().manual_seed(seed)
    row = torch.randn(size, generator=source) * scale
    if kind == "ties":
        row = (row * 2).round() / 2
    elif kind == "holes":
        row[torch.rand(size, generator=source) < 0.3] = -torch.inf
        row[seed % size] = 0.0
    elif kind in ("float16", "bfloat16"):
        row = row.to(getattr(torch, kind)).float()
    return row


ROWS = st.builds(
    row_of,
    st.integers(0, 10**6),
    st.sampled_from(SIZES),
    st.sampled_from([1e-3, 0.5, 2.0, 6.0, 30.0]),
    st.sampled_from(["plain", "ties", "holes", "float16", "bfloat16"]),
)


def stage(row: torch.Tensor, **changes: Any) -> torch.Tensor:
    """What the one stage that `changes` switch on leaves of `row`."""
    (found,) = walk(row, IDS % len(row), build(Decoding(**(OFF | changes)), 2))
    return found[1]


def reference(row: torch.Tensor, warper: Callable[..., torch.Tensor]) -> torch.Tensor:
    """The same by transformers."""
    return warper((IDS % len(row))[None], row[None].clone())[0]


def assert_sound(out: torch.Tensor) -> None:
    assert not out.isnan().any() and out.isfinite().any()
    assert float(out.double().softmax(0).sum()) == pytest.approx(1, abs=1e-9)


def assert_same(ours: torch.Tensor, other: torch.Tensor) -> None:
    assert_sound(ours)
    assert torch.equal(ours == -torch.inf, other == -torch.inf)
    assert float((ours.double().softmax(0) - other.double().softmax(0)).abs().max()) < 1e-6


def edge_is_a_tie(order: torch.Tensor, shares: torch.Tensor, goal: float) -> bool:
    """Whether the goal falls on a candidate's boundary, to within a millionth of its mass."""
    own = shares[order]
    return bool(((own.cumsum(0) - own - goal).abs() <= 2e-6 * own + 1e-12).any())


@settings(max_examples=80, deadline=None)
@given(ROWS, st.sampled_from(TEMPERATURES))
def test_temperature(row: torch.Tensor, temperature: float) -> None:
    ours = stage(row, temperature=temperature)
    assert_same(ours, reference(row, theirs.TemperatureLogitsWarper(temperature)))


@settings(max_examples=80, deadline=None)
@given(ROWS, st.sampled_from([1, 2, 7, 1024, 10**6]))
def test_top_k(row: torch.Tensor, top_k: int) -> None:
    ours = stage(row, top_k=top_k)
    assert_same(ours, reference(row, theirs.TopKLogitsWarper(top_k)))
    assert int(ours.isfinite().sum()) >= min(top_k, int(row.isfinite().sum()))


@settings(max_examples=80, deadline=None)
@given(ROWS, st.sampled_from([1e-8, 0.01, 0.3, 1.0]))
def test_min_p(row: torch.Tensor, min_p: float) -> None:
    ours = stage(row, min_p=min_p)
    assert_same(ours, reference(row, theirs.MinPLogitsWarper(min_p)))
    assert bool(ours[row.argmax()].isfinite())


@settings(max_examples=80, deadline=None)
@given(ROWS, st.sampled_from([0.01, 0.5, 1.2, 2, 100.0]), st.sampled_from(["all", "output"]))
def test_repetition_penalty(row: torch.Tensor, penalty: float, scope: str) -> None:
    ours = stage(row, repetition_penalty=penalty, penalty_scope=scope)
    ignored = 2 if scope == "output" else None
    warper = theirs.RepetitionPenaltyLogitsProcessor(float(penalty), prompt_ignore_length=ignored)
    assert_same(ours, reference(row, warper))
    seen = set((IDS % len(row))[ignored or 0 :].tolist())
    changed = set((ours != row).nonzero()[:, 0].tolist())
    assert changed <= seen and seen - changed <= {i for i in seen if row[i] in (0, -torch.inf)}


@settings(max_examples=200, deadline=None)
@given(ROWS, st.sampled_from(SHARES), st.sampled_from(TEMPERATURES))
@example(row_of(61326, 1024, 2.0, "plain"), 0.9999, 1.0)
def test_top_p(row: torch.Tensor, top_p: float, temperature: float) -> None:
    row = row / temperature
    ours = TopP(top_p)(IDS, row[None])[0]
    kept = ours.isfinite()
    assert_sound(ours)
    order = row.sort(descending=True, stable=True).indices
    count = int(kept.sum())
    assert set(order[:count].tolist()) == set(kept.nonzero()[:, 0].tolist())  # ties go to the lowest ids
    other = theirs.TopPLogitsWarper(top_p)(IDS, row.double()[None])[0].isfinite()
    if not edge_is_a_tie(order, row.double().softmax(0), top_p):
        assert torch.equal(row[kept].sort().values, row[other & row.isfinite()].sort().values)


@settings(max_examples=200, deadline=None)
@given(ROWS, st.sampled_from(SHARES), st.sampled_from(TEMPERATURES))
def test_typical_p(row: torch.Tensor, typical_p: float, temperature: float) -> None:
    row = row / temperature
    ours = TypicalP(typical_p)(IDS, row[None])[0]
    assert_sound(ours)
    shares = row.double().softmax(0)
    surprisal = -row.double().log_softmax(0)
    entropy = torch.where(shares > 0, surprisal * shares, 0).sum()
    order = (surprisal - entropy).abs().sort(stable=True).indices
    other = theirs.TypicalLogitsWarper(max(typical_p, 1e-30))(IDS, row.double()[None])[0]
    if not edge_is_a_tie(order, shares, typical_p):
        assert torch.equal(ours.isfinite(), other.isfinite())
        assert torch.equal(ours, row.masked_fill(~other.isfinite(), -torch.inf))


@pytest.mark.parametrize("top_p", [0.5, 0.9, 0.99])
def test_masks_of_two_thousand_rows_are_transformers_own(top_p: float) -> None:
    """In batches for them, row by row for ours; every row has other logits, flat ones to peaked ones."""
    source = torch.Generator().manual_seed(7)
    rows = torch.randn(2000, 2500, generator=source) * torch.linspace(0.3, 8, 2000)[:, None]
    nucleus, typical = TopP(top_p), TypicalP(top_p)
    for batch in rows.split(250):
        reference_p = theirs.TopPLogitsWarper(top_p)(IDS, batch.double()).isfinite()
        reference_t = theirs.TypicalLogitsWarper(top_p)(IDS, batch.double()).isfinite()
        assert torch.equal(torch.cat([nucleus(IDS, row[None]) for row in batch]).isfinite(), reference_p)
        assert torch.equal(torch.cat([typical(IDS, row[None]) for row in batch]).isfinite(), reference_t)


@pytest.mark.parametrize("filter_", [TopP, TypicalP])
@pytest.mark.parametrize("size", [5, 6000])
@pytest.mark.parametrize("share", [0.0, 1e-8, 1e-4])
def test_tiny_shares_keep_one(filter_: Any, size: int, share: float) -> None:
    """Case 12: a row as bf16 has it, upcast; top-p keeps the best, typical the most typical."""
    row = row_of(3, size, 4.0, "bfloat16")
    kept = filter_(share)(IDS, row[None])[0].isfinite()
    assert bool(kept.any())
    if filter_ is TopP:
        assert kept.nonzero()[:, 0].tolist() == [int(row.argmax())]


@pytest.mark.parametrize("size", [4, 4096, 10_000])
def test_equal_candidates_stay_together_in_typical_and_go_by_id_in_top_p(size: int) -> None:
    row = torch.zeros(size)
    assert TypicalP(0.5)(IDS, row[None])[0].isfinite().all()
    assert TopP(0.5)(IDS, row[None])[0].isfinite().nonzero()[:, 0].tolist() == list(range(size // 2))


@settings(max_examples=60, deadline=None)
@given(
    ROWS,
    st.sampled_from(list(ORDERS.values())),
    st.sampled_from([1e-30, *TEMPERATURES]),
    st.sampled_from(SHARES),
)
def test_all_stages_together_leave_someone(
    row: torch.Tensor, order: tuple[str, ...], temperature: float, share: float
) -> None:
    decoding = Decoding(
        temperature=temperature, top_k=5, top_p=share, min_p=0.5, typical_p=share, repetition_penalty=1.7,
        order=order,
    )  # fmt: skip
    for _, out in walk(row, IDS % len(row), build(decoding, 0)):
        assert_sound(out)
