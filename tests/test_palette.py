"""The colours of assets/tokens.css: contrast of every pair that is used, and apart for colour-blind readers.

Colour is never the only carrier (labels, legends, outlines and places say the same), so these are the
second line of defence.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest

ASSETS = Path(__file__).resolve().parents[1] / "assets"
THEMES = ("light", "dark")

TEXT = [
    *[(text, ground) for text in ("ink", "muted", "faint", "accent") for ground in ("card", "page")],
    *[(text, "card") for text in ("memory", "prefill", "error")],
    *[("accent", "accent-soft"), ("ink", "accent-soft"), ("on-accent", "accent")],
    *[("prefill", "memory-soft"), ("prefill", "prefill-soft"), ("error", "error-soft"), ("card", "ink")],
    *[("ink", f"s{n}") for n in range(1, 5)],
]
GRAPHICS = [
    *[(mark, ground) for mark in ("bar", "bar-thin", "removed", "control") for ground in ("card", "page")],
    *[("accent", "card"), ("accent", "page"), ("memory", "card"), ("prefill", "card")],
    *[("memory", "memory-soft"), ("prefill", "prefill-soft")],
    *[(f"s{n}-edge", "card") for n in range(1, 5)],
]

TOGETHER = [
    *pairwise(("card", "s1", "s2", "s3", "s4")),
    *[("prefill", "memory"), ("accent", "bar"), ("accent", "bar-thin"), ("memory", "bar-thin")],
    *[("prefill", "bar-thin"), ("bar", "bar-thin"), ("bar-thin", "card")],
]
"""What stands side by side and means different things."""

LEAST_DISTANCE = 0.045
"""In OKLab; about 0.02 is the least that is noticed."""

# Machado, Oliveira and Fernandes 2009, “A Physiologically-based Model for Simulation of Color Vision
# Deficiency”, severity 1.0, on linear RGB.
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip

Colour = tuple[float, float, float]


def colours(theme: str) -> dict[str, str]:
    block = (ASSETS / "tokens.css").read_text("utf-8").split(f'[data-theme="{theme}"]')[1].split("}")[0]
    return dict(re.findall(r"--ft-([\w-]+): (#[0-9a-f]{6});", block))


def linear(colour: str) -> Colour:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return _curve(red), _curve(green), _curve(blue)


def _curve(c: float) -> float:
    return c / 12.92 if c <= 0.04045 else float(((c + 0.055) / 1.055) ** 2.4)


def contrast(a: str, b: str) -> float:
    """WCAG 2.2's ratio of relative luminances."""
    low, high = sorted(
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(x), strict=True)) for x in (a, b)
    )
    return (high + 0.05) / (low + 0.05)


def seen(colour: str, eye: str) -> Colour:
    """The colour in OKLab (Ottosson 2020) as that eye sees it."""
    rgb = [min(1.0, max(0.0, c)) for c in _times(EYES[eye], linear(colour))]
    cones = _times(
        ((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566),
         (0.0883024619, 0.2817188376, 0.6299787005)), rgb,
    )  # fmt: skip
    return _times(
        ((0.2104542553, 0.7936177850, -0.0040720468), (1.9779984951, -2.4285922050, 0.4505937099),
         (0.0259040371, 0.7827717662, -0.8086757660)), [c ** (1 / 3) for c in cones],
    )  # fmt: skip


def _times(matrix: tuple[Colour, ...], vector: Colour | list[float]) -> Colour:
    x, y, z = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return x, y, z


def distance(a: Colour, b: Colour) -> float:
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True)) ** 0.5


@pytest.mark.parametrize("theme", THEMES)
def test_text_can_be_read_and_graphics_be_seen(theme: str) -> None:
    named = colours(theme)
    short = [
        (a, b, round(contrast(named[a], named[b]), 2))
        for pairs, least in ((TEXT, 4.5), (GRAPHICS, 3.0))
        for a, b in pairs
        if contrast(named[a], named[b]) < least
    ]
    assert short == []


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_what_stands_side_by_side_is_apart_for_every_eye(theme: str, eye: str) -> None:
    named = colours(theme)
    close = [
        (a, b, round(distance(seen(named[a], eye), seen(named[b], eye)), 3))
        for a, b in TOGETHER
        if distance(seen(named[a], eye), seen(named[b], eye)) < LEAST_DISTANCE
    ]
    assert close == []


@pytest.mark.parametrize("theme", THEMES)
def test_more_surprisal_is_never_lighter_than_less(theme: str) -> None:
    """The scale can be read without any colour: it goes one way in lightness, from the card on."""
    named = colours(theme)
    steps = [seen(named[f"s{n}"], "all cones")[0] for n in range(1, 5)]
    assert steps == sorted(steps, reverse=theme == "light")


def test_black_on_white_is_21_to_1() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert distance(seen("#000000", "all cones"), seen("#ffffff", "all cones")) == pytest.approx(1, abs=1e-3)


def test_colours_are_named_in_one_file() -> None:
    """Other style sheets use the tokens, so that these tests cover what they show."""
    found = {
        sheet.name: re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)", sheet.read_text("utf-8"))
        for sheet in ASSETS.glob("*.css")
        if sheet.name != "tokens.css"
    }
    assert {name: values for name, values in found.items() if values} == {}
