"""A curve through measured times: constant, linear and quadratic part, by least squares.

Tells whether the quadratic part can be told apart from the scatter at all. Knows numbers only.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

_T_97_5 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23)
"""Student's t for 1, 2, ... degrees of freedom: with few points scatter is known badly, so more is asked."""
_T_MANY = 2.1
_SMALLEST_SHARE = 0.01
"""A quadratic part below this share of the time at the longest n is nothing that could be seen."""


@dataclass(frozen=True, slots=True)
class Curve:
    """seconds = constant + linear x n + quadratic x n x n.

    `quadratic_error` is its standard error; `separable` tells that the quadratic part stands out of the
    scatter (two-sided 95 %, Student's t), can be seen at the longest n, and leaves a linear part that is
    one: reading longer prompts is no gain.
    """

    constant: float
    linear: float
    quadratic: float
    quadratic_error: float
    separable: bool

    def parts(self, n: float) -> tuple[float, float, float]:
        """Seconds of the three parts at `n`."""
        return self.constant, self.linear * n, self.quadratic * n * n


def quadratic_fit(points: Sequence[tuple[float, float]]) -> Curve | None:
    """Fit (n, seconds), n above 0; None with fewer than four different n, where scatter cannot be judged.

    Points are weighted by 1 / n, as times of longer prompts scatter more.
    """
    if len({n for n, _ in points}) < 4:
        return None
    scale = max(n for n, _ in points)
    rows = [((1.0, n / scale, (n / scale) ** 2), seconds, scale / n) for n, seconds in points]
    normal = [[sum(w * x[i] * x[j] for x, _, w in rows) for j in range(3)] for i in range(3)]
    right = [sum(w * x[i] * y for x, y, w in rows) for i in range(3)]
    inverse = _inverse(normal)
    if inverse is None:
        return None
    a, b, c = (sum(inverse[i][j] * right[j] for j in range(3)) for i in range(3))
    residual = sum(w * (y - a - b * x[1] - c * x[2]) ** 2 for x, y, w in rows)
    freedom = len(rows) - 3
    error = sqrt(max(0.0, residual / freedom * inverse[2][2]))
    separable = b >= 0 and c > _t(freedom) * error and c > _SMALLEST_SHARE * (a + b + c)
    return Curve(a, b / scale, c / scale**2, error / scale**2, separable)


def _t(freedom: int) -> float:
    return _T_97_5[freedom - 1] if freedom <= len(_T_97_5) else _T_MANY


def _inverse(m: list[list[float]]) -> list[list[float]] | None:
    """Of a 3 x 3 matrix, by its adjugate; None where it is as good as singular."""

    def minor(i: int, j: int) -> float:
        (a, b), (c, d) = ([row[k] for k in range(3) if k != j] for r, row in enumerate(m) if r != i)
        return a * d - b * c

    determinant = sum((-1) ** j * m[0][j] * minor(0, j) for j in range(3))
    if abs(determinant) < 1e-30:
        return None
    return [[(-1) ** (i + j) * minor(j, i) / determinant for j in range(3)] for i in range(3)]
