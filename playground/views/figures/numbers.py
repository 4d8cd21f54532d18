"""How quantities are written in figures and their tables. Units come from the ends of column names."""

from collections.abc import Mapping

from playground.core.units import bytes_text, probability_text, seconds_text

_POWERS = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def figures_text(value: float) -> str:
    """Three significant figures, thousands separated: `227.4` as `227`, `1.8712` as `1.87`."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.9995 else 3
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def power_text(value: float, unit: str) -> str:
    """`2.6e10` and `B/s` as `26 GB/s`: rates count in powers of 1,000, as their makers do."""
    size, prefix = next(((s, p) for s, p in _POWERS if abs(value) >= s * 0.9995), (1.0, ""))
    return f"{figures_text(value / size)} {prefix}{unit}"


def small_text(value: float) -> str:
    """Two significant figures, never in exponent form: 0.000031."""
    if value == 0:
        return "0"
    written = f"{value:.2g}"
    return written if "e" not in written else f"{float(written):.12f}".rstrip("0").rstrip(".") or written


def amount(tokens: int, sequences: int, text: Mapping[str, str]) -> str:
    """`32 × 4,096 tokens`, or `4,096 tokens` of one sequence."""
    key = "amount" if sequences > 1 else "amount_one"
    return text[key].format(tokens=f"{tokens:,}", sequences=f"{sequences:,}")


def cell_text(column: str, value: float) -> str:
    """One number of a table, by what its column's name ends in."""
    if column.endswith("flops_per_second"):
        return power_text(value, "FLOP/s")
    if column.endswith("bytes_per_second"):
        return power_text(value, "B/s")
    if column.endswith("seconds"):
        return seconds_text(value)
    if "bytes" in column or column == "bytes_read":
        return bytes_text(round(value))
    if column.endswith("share") or column.startswith("share"):
        return probability_text(value)
    return f"{value:,}" if isinstance(value, int) else _plain(value)


def _plain(value: float) -> str:
    return f"{value:.2e}" if value and abs(value) < 0.001 else figures_text(value)
