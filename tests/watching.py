"""A Chromium that watches a page: console errors and requests to other machines fail the test.

One browser for all rings of a process, which can drive only one.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

CHROMIUM_ARGUMENTS = [
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser(chromium: str | None) -> Iterator[Any]:
    """One Chromium for all tests of this ring, quiet on the network."""
    playwright = pytest.importorskip("playwright.sync_api")
    arguments = CHROMIUM_ARGUMENTS + ["--no-sandbox"] * (hasattr(os, "geteuid") and os.geteuid() == 0)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        yield browser
        browser.close()


@dataclass
class Watched:
    """What the console complained about, and what was asked of other machines."""

    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def attach(self, page: Any) -> None:
        page.on("console", lambda m: self.complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda r: self.foreign.append(r.url) if not _is_local(r.url) else None)


@pytest.fixture
def watched() -> Iterator[Watched]:
    """At the end of a test: no console error, no request that left the machine."""
    watched = Watched()
    yield watched
    assert not watched.complaints, f"the console has errors: {watched.complaints[:3]}"
    assert not watched.foreign, f"requests left the machine: {watched.foreign[:3]}"


@pytest.fixture
def open_page(browser: Any, watched: Watched) -> Iterator[Callable[..., Any]]:
    """`open_page(url, **context)`: a watched page in a browser profile of its own, its stage mounted."""
    contexts = []

    def open_page(url: str, **options: Any) -> Any:
        context = browser.new_context(
            **({"viewport": {"width": 1440, "height": 1000}, "locale": "en-US"} | options)
        )
        contexts.append(context)
        page = context.new_page()
        watched.attach(page)
        page.goto(url)
        page.wait_for_function(
            "window.firstTokenStage && firstTokenStage.counters.packets > 0", timeout=30_000
        )
        return page

    yield open_page
    complaints = list(watched.complaints)
    for context in contexts:
        context.close()
    watched.complaints[:] = complaints


def _is_local(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme in ("data", "blob", "about") or parts.hostname in ("127.0.0.1", "localhost", "::1")
