"""A model that knows Chinese is offered only where it can be had."""

from types import SimpleNamespace
from typing import Any

import pytest

from playground import catalog
from playground.engine.progress import CannotLoad
from playground.ui.offer import multilingual, no_offer


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A Hub that answers or not, and counts what it is asked."""
    state = SimpleNamespace(answers=False, cached=None, asked=0)

    def info(self: Any, hub_id: str, timeout: float) -> object:
        state.asked += 1
        if not state.answers:
            raise OSError("no route")
        return object()

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", info)
    monkeypatch.setattr("playground.engine.hub.cached", lambda hub_id: state.cached)
    return state


def test_the_hub_is_asked_until_it_answers(hub: SimpleNamespace) -> None:
    offer = multilingual(offline=False)
    assert offer() is None
    hub.answers = True
    name = offer()
    assert name is not None
    assert catalog.model(name).multilingual  # type: ignore[union-attr]
    assert offer() == name
    assert hub.asked == 2


def test_offline_asks_nobody_and_offers_what_lies_here(hub: SimpleNamespace) -> None:
    hub.answers = True
    offer = multilingual(offline=True)
    assert offer() is None
    assert hub.asked == 0
    hub.cached = "somewhere"
    assert offer() is not None


def test_a_broken_copy_is_not_offered(hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(hub_id: str) -> None:
        raise CannotLoad("The file model.safetensors is broken.")

    monkeypatch.setattr("playground.engine.hub.cached", broken)
    assert multilingual(offline=False)() is None


def test_no_offer() -> None:
    assert no_offer() is None
