"""How quantities are written for people: the page, the terminal and exports agree.

Bytes are multiples of 1,024 (KiB, MiB, GiB), three significant figures, zeros after the point left
out. Knows numbers only.
"""

from decimal import ROUND_HALF_UP, Decimal
from math import floor, log10

BINARY_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")


def bytes_text(count: int | None) -> str:
    """`46080` as `45 KiB`, `16777216000` as `15.6 GiB`; None is `unknown`."""
    if count is None:
        return "unknown"
    if abs(count) < 1024:
        return f"{count} B"
    power = next((p for p in range(1, len(BINARY_UNITS)) if abs(count) / 1024**p < 1023.5), len(BINARY_UNITS))
    return f"{_three_figures(count / 1024**power)} {BINARY_UNITS[power - 1]}"


def bytes_texts(*counts: int | None) -> list[str]:
    """All in the unit of the largest, so that they can be compared: `0.5 GiB` beside `15 GiB`."""
    most = max((abs(count) for count in counts if count is not None), default=0)
    if most < 1024:
        return [bytes_text(count) for count in counts]
    unit = bytes_text(most).rpartition(" ")[2]
    size = 1024 ** (BINARY_UNITS.index(unit) + 1)
    return ["unknown" if count is None else f"{_any_size(count / size)} {unit}" for count in counts]


def seconds_text(seconds: float | None) -> str:
    """`0.0362` as `36 ms`, `0.00421` as `4.21 ms`, `2.53` as `2.53 s`; None is `unknown`."""
    if seconds is None:
        return "unknown"
    if seconds >= 1:
        return f"{_three_figures(seconds)} s"
    milliseconds = seconds * 1000
    return f"{_rounded(milliseconds, 0)} ms" if milliseconds >= 10 else f"{_three_figures(milliseconds)} ms"


def probability_text(probability: float) -> str:
    """A share as percent with three significant figures: `0.0621` as `6.21 %`."""
    if probability == 0:
        return "0 %"
    percent = probability * 100
    return f"{percent:.1e} %" if percent < 0.001 else f"{percent:.3g} %"


def _any_size(value: float) -> str:
    """Three significant figures, below 1 too."""
    if 0 < abs(value) < 0.9995:
        return f"{value:.{2 - floor(log10(abs(value)))}f}".rstrip("0")
    return _three_figures(value)


def shares_text(share: float) -> tuple[str, str]:
    """A share and the rest, which make 100: `0.0603` as `6 %` and `94 %`, one decimal below 1 %."""
    smaller = 100 * min(share, 1 - share)
    decimals = 1 if smaller < 1 else 0
    written = max(0.1 if decimals else 1.0, round(smaller, decimals))
    low, high = f"{written:.{decimals}f} %", f"{100 - written:.{decimals}f} %"
    return (low, high) if share < 0.5 else (high, low)


def _three_figures(value: float) -> str:
    text = _rounded(value, 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(value: float, digits: int) -> str:
    """Halves go up, as in the browser: 11.25 MiB is 11.3 MiB in every place."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"
