"""A tab gives up its runs when its last page is closed, and not while a reload or a copy shows it."""

import pytest

from playground.ui import pages as pages_module
from playground.ui.pages import Pages

TAB, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def left() -> list[str]:
    return []


@pytest.fixture
def pages(left: list[str]) -> Pages:
    return Pages(left.append)


def test_the_last_page_that_closes_leaves(pages: Pages, left: list[str]) -> None:
    pages.opened("page", TAB)
    pages.opened("elsewhere", OTHER)
    pages.closed("page")
    pages.closed("page")
    assert left == [TAB]


def test_a_reload_opens_the_new_page_before_the_old_one_is_known_to_be_gone(
    pages: Pages, left: list[str]
) -> None:
    pages.opened("old", TAB)
    pages.opened("new", TAB)
    pages.closed("old")
    assert left == []
    pages.closed("new")
    assert left == [TAB]


@pytest.mark.parametrize(("page", "token"), [("", TAB), ("page", "")])
def test_who_does_not_say_who_they_are_leaves_nothing(
    pages: Pages, left: list[str], page: str, token: str
) -> None:
    pages.opened(page, token)
    pages.closed(page)
    pages.closed("never seen")
    assert left == []


def test_open_pages_are_bounded(pages: Pages, left: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_module, "PAGES_LIMIT", 3)
    for page in "abcde":
        pages.opened(page, page * 32)
    for page in "abcde":
        pages.closed(page)
    assert left == ["c" * 32, "d" * 32, "e" * 32]
