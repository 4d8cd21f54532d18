"""Open pages: which tab each one shows, and that a tab whose last page is closed gives up its runs.

A reload is a new page of the same tab, and often opens before the server knows that the old one is gone;
a copied tab is shown by two. Pages go by gradio's session, tabs by their own token. Knows no run.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import gradio as gr

from playground.ui.session import read_tab

PAGES_LIMIT = 10_000
"""Beyond it the pages opened first are forgotten; their runs go when nobody has read them for long."""


class Pages:
    """The open pages; `left` is called with the token of a tab that no open page shows any more."""

    def __init__(self, left: Callable[[str], None]) -> None:
        self._left = left
        self._tokens: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def opened(self, page: str, token: str) -> None:
        """A page shows the tab of `token`."""
        if not page or not token:
            return
        with self._lock:
            self._tokens[page] = token
            while len(self._tokens) > PAGES_LIMIT:
                self._tokens.popitem(last=False)

    def closed(self, page: str) -> None:
        """A page is gone."""
        with self._lock:
            token = self._tokens.pop(page, None)
            shown = token in self._tokens.values()
        if token is not None and not shown:
            self._left(token)


def watch_pages(demo: gr.Blocks, ready: Any, left: Callable[[str], None]) -> None:
    """Follow the pages of `demo`; `ready` is the event by which a page says whose tab it is."""
    pages = Pages(left)

    def opened(caller: gr.Request, event: gr.EventData) -> None:
        pages.opened(caller.session_hash or "", read_tab(event._data).token)

    def closed(caller: gr.Request) -> None:
        pages.closed(caller.session_hash or "")

    ready(opened, None, None, queue=False, show_progress="hidden", api_visibility="private")
    demo.unload(closed)
