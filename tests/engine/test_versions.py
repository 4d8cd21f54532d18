"""The two ends of transformers on which the engine is tested."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def pinned(file: str) -> str:
    found = re.search(r"^transformers==(\S+)$", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    assert found
    return found[1]


def test_the_oldest_tested_is_the_oldest_allowed() -> None:
    """Case 30: whoever raises the bound in pyproject.toml moves the test with it."""
    lower = re.search(r'"transformers>=([\d.]+),', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert lower and pinned("constraints-oldest.txt").startswith(f"{lower[1]}.")
    assert pinned("constraints-oldest.txt") != pinned("constraints.txt")
