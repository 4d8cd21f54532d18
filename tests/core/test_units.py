"""Quantities as people read them (case 39)."""

import pytest

from playground.core.units import bytes_text, bytes_texts, probability_text, seconds_text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (46_080, "45 KiB"), (131_072, "128 KiB"),
        (536_870_912, "512 MiB"), (16_777_216_000, "15.6 GiB"), (17_179_869_184, "16 GiB"),
        (1023 * 1024, "1,023 KiB"), (2**60, "1,024 PiB"), (11_796_480, "11.3 MiB"), (None, "unknown"),
    ],
)  # fmt: skip
def test_bytes(count, text):
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0362, "36 ms"),
        (0.00421, "4.21 ms"),
        (2.53, "2.53 s"),
        (0.9994, "999 ms"),
        (0, "0 ms"),
        (None, "unknown"),
    ],
)
def test_seconds(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("probability", "text"),
    [(0.0621, "6.21 %"), (1, "100 %"), (0, "0 %"), (0.5, "50 %"), (1e-7, "1.0e-05 %")],
)
def test_probabilities(probability, text):
    assert probability_text(probability) == text


def test_bytes_side_by_side_are_in_one_unit():
    """Case 39: a cache beside weights."""
    assert bytes_texts(512 * 2**20, 16_060_522_496) == ["0.5 GiB", "15 GiB"]
    assert bytes_texts(131_072, 2**30, None) == ["0.000122 GiB", "1 GiB", "unknown"]
    assert bytes_texts(0, 12) == ["0 B", "12 B"]
