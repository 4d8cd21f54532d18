"""The fit against curves that are known, and what it says of scatter."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playground.core.fit import quadratic_fit

LENGTHS = (32, 64, 128, 256, 512, 1024, 2048, 4096)


@given(a=st.floats(0, 1), b=st.floats(1e-4, 1e-2), c=st.floats(1e-7, 1e-4))
def test_an_exact_curve_is_found(a: float, b: float, c: float) -> None:
    found = quadratic_fit([(n, a + b * n + c * n * n) for n in LENGTHS])
    assert found is not None
    assert found.parts(4096) == pytest.approx((a, b * 4096, c * 4096**2), rel=1e-5, abs=1e-6)
    assert found.separable is (c * 4096**2 > 0.01 * (a + b * 4096 + c * 4096**2))


def test_a_straight_line_has_no_quadratic_part() -> None:
    found = quadratic_fit([(n, 0.01 + 0.001 * n) for n in LENGTHS])
    assert found is not None and not found.separable


def scattered(quadratic: float, scatter: float, seed: int) -> list[tuple[float, float]]:
    noise = random.Random(seed)
    curve = ((n, 0.01 + 0.001 * n + quadratic * n * n) for n in LENGTHS for _ in range(3))
    return [(n, seconds * (1 + noise.gauss(0, scatter))) for n, seconds in curve]


def test_scatter_hides_a_small_part_and_leaves_a_large_one() -> None:
    large = [quadratic_fit(scattered(1e-6, 0.05, seed)) for seed in range(20)]
    none = [quadratic_fit(scattered(0, 0.05, seed)) for seed in range(100)]
    assert all(found is not None and found.separable for found in large)
    assert sum(found is not None and found.separable for found in none) <= 10


def test_few_points_have_to_stand_out_further() -> None:
    """One degree of freedom: a residual of the size of the part itself settles nothing."""
    points = [(1.0, 1.0), (2.0, 1.9), (3.0, 3.3), (4.0, 4.7)]
    found = quadratic_fit(points)
    assert found is not None and found.quadratic > 0 and not found.separable


def test_a_linear_part_below_nothing_is_no_split() -> None:
    """One length that was disturbed bends the whole curve; it passes for no quadratic part."""
    points = [(n, 0.001 * n * (12 if n == 4096 else 1)) for n in LENGTHS]
    found = quadratic_fit(points)
    assert found is not None and found.linear < 0 and not found.separable


def test_three_lengths_are_too_few() -> None:
    assert quadratic_fit([(1, 1.0), (2, 2.0), (3, 4.0), (3, 4.1), (1, 1.1)]) is None
    assert quadratic_fit([]) is None
