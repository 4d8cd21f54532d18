"""Every case that this version promises is named by the test that holds it."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PROMISED = (*range(1, 17), *range(18, 22), 24, *range(26, 40))
NAMED = re.compile(r"\bCases? (\d+(?:(?:, | and )\d+)*)")


def named_cases() -> set[int]:
    """The numbers after “Case” in the docstrings of the tests."""
    found: set[int] = set()
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for numbers in NAMED.findall(ast.get_docstring(node) or ""):
                    found |= set(map(int, re.findall(r"\d+", numbers)))
    return found


@pytest.mark.parametrize("case", PROMISED)
def test_a_test_names_the_case(case: int) -> None:
    assert case in named_cases()
