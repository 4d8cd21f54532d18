"""Every case that this version promises is named by the test that holds it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PROMISED = (*range(1, 17), *range(18, 22), *range(24, 40))
COST = range(31, 40)
"""The cost numbers, which page, command and API tell alike."""

NAMED = re.compile(r"\bCases? (\d+(?:(?:, | and )\d+)*)")
SURFACES = {"page": r"\bpage\b", "command": r"\bcommand\b", "API": r"\bAPI\b"}


@cache
def docstrings() -> tuple[str, ...]:
    """Of all tests."""
    return tuple(_docstrings())


def _docstrings() -> Iterator[str]:
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield ast.get_docstring(node) or ""


def named_cases(surface: str = "") -> set[int]:
    """The numbers after “Case” in the docstrings of the tests; of those that speak of `surface`."""
    told = (text for text in docstrings() if re.search(SURFACES.get(surface, ""), text))
    return {
        int(number) for text in told for named in NAMED.findall(text) for number in re.findall(r"\d+", named)
    }


@pytest.mark.parametrize("case", PROMISED)
def test_a_test_names_the_case(case: int) -> None:
    assert case in named_cases()


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("case", COST)
def test_a_cost_number_is_tested_in_every_place(case: int, surface: str) -> None:
    assert case in named_cases(surface)
