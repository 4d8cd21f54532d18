"""Connections to servers: one a tab, under a name that nobody guesses, and gone with the tab's wish."""

from collections.abc import Iterator
from typing import Any

import pytest

from playground.backends.hosted import Runs
from playground.backends.protocol import Backend, BackendError
from playground.backends.remote.backend import RemoteBackend, connect
from playground.backends.remote.reach import anywhere
from playground.core.decoding import GREEDY
from playground.core.request import Request
from playground.ui.branches import maker
from playground.ui.models import REMOTE, Models
from playground.ui.session import Tab
from playground.ui.tab_connect import Connections, _Handlers
from playground.views.connection import found_table
from tests.backends.fault_server import STOP, FaultServer, sse, step

KEY = "sk-only-for-this-session"
TAB = Tab("a" * 32)
WHO = '{"session": "%s", "language": "%s"}'


@pytest.fixture
def server() -> Iterator[FaultServer]:
    made = FaultServer()
    yield made
    made.close()


def _nothing(name: str, report: Any) -> Backend:
    raise BackendError("There is no model here.")


@pytest.fixture
def models() -> Models:
    return Models(_nothing, "default", open_names=False)


def reports(handlers: _Handlers, address: str, key: str = "", language: str = "en") -> list[Any]:
    *_, last = handlers.connect(address, key, "", WHO % (TAB.token, language))
    return last


def test_a_connection_is_found_by_its_name_alone_and_one_replaces_the_other(
    server: FaultServer, models: Models
) -> None:
    connections = Connections(models)
    first = connections.take(TAB, connect(server.url, KEY))
    assert first.startswith(REMOTE) and len(first) > 25 and KEY not in first
    assert models.loaded(first) is connections.of(TAB) and first not in models.offered
    assert models.maker_of(connections.of(TAB).facts()) is None  # type: ignore[union-attr]
    second = connections.take(TAB, connect(server.url))
    assert models.loaded(first) is None and models.loaded(second) is not None
    with pytest.raises(BackendError, match="connection to that server has ended"):
        next(models.ready(first))
    connections.drop(TAB)
    assert connections.of(TAB) is None and models.loaded(second) is None


def test_the_handlers_fill_the_page_and_empty_the_key(server: FaultServer, models: Models) -> None:
    handlers = _Handlers(models, Connections(models), lambda address: anywhere)
    report, key, picker, ready = reports(handlers, server.url, KEY)
    assert key == "" and picker["value"].startswith(REMOTE) and "small" in ready
    assert KEY not in report + str(picker) + ready
    assert "\u8bcd\u5143" in handlers.show(WHO % (TAB.token, "zh"))
    back = handlers.back(WHO % (TAB.token, "en"))
    assert back[2]["value"] == "default" and handlers.show(WHO % (TAB.token, "en")) == ""


@pytest.mark.parametrize("language", ["en", "zh"])
def test_refusals_change_nothing(server: FaultServer, models: Models, language: str) -> None:
    refusing = _Handlers(models, Connections(models), lambda address: None)
    said, *others = reports(refusing, server.url, KEY, language)
    assert "connect-error" in said and not server.asked and KEY not in said
    assert ("does not connect" in said) == (language == "en")
    assert all(isinstance(one, dict) and "value" not in one for one in others)
    *_, nobody = refusing.connect(server.url, "", "", "{}")
    assert "connect-error" in nobody[0]


def test_what_a_server_says_of_itself_is_escaped(server: FaultServer, models: Models) -> None:
    server.answers["/v1/models"] = {"data": [{"id": "<img src=x onerror=alert(1)>", "meta": {}}]}
    report, *_ = reports(_Handlers(models, Connections(models), lambda address: anywhere), server.url)
    assert "<img" not in report and "&lt;img" in report


def test_every_ability_and_reason_has_its_words(server: FaultServer) -> None:
    backend = connect(server.url)
    for reason in ("internals", "no_slots", "no_metrics", "no_reuse", "words_only", "no_tokenize"):
        abilities = [(name, False, reason) for name, _ in backend.capabilities.items()]
        assert "<tr" in found_table(backend.facts(), backend.address, abilities, "zh")


def test_a_run_goes_on_over_the_connection_that_made_it(server: FaultServer, models: Models) -> None:
    server.stream(sse(step(5, "one"), STOP))
    mine = connect(server.url, KEY)
    hosted = Runs().start("tab.run", mine, Request("a b", (GREEDY,), chat=False))
    for _ in hosted.follow():
        pass
    assert isinstance(maker(models, hosted), RemoteBackend) and maker(models, hosted) is mine
    tokens, notes = mine.continuation(hosted.run.started.prompt, " b")  # type: ignore[union-attr]
    assert [token.id for token in tokens] == [1, 2] and notes == ()
