"""Models are loaded once, in the background, and a failure leaves the others alone."""

from typing import Any

import pytest

from playground.backends.protocol import BackendError
from playground.engine.progress import CannotLoad
from playground.ui.models import Models


def wait(models: Models, name: str | None = None) -> Any:
    waiting = models.ready(name)
    while True:
        try:
            next(waiting)
        except StopIteration as ready:
            return ready.value


def loading(calls: list[str]) -> Any:
    def load(name: str, report: Any) -> Any:
        calls.append(name)
        if name == "bad":
            raise CannotLoad("It is broken.")
        return f"backend of {name}"

    return load


def test_a_model_is_loaded_once() -> None:
    calls: list[str] = []
    models = Models(loading(calls), "a")
    models.begin()
    assert wait(models) == wait(models, "a") == models.loaded() == "backend of a"
    assert calls == ["a"]


def test_a_failure_is_told_and_tried_again_and_the_running_model_stays() -> None:
    calls: list[str] = []
    models = Models(loading(calls), "a")
    wait(models)
    for _ in range(2):
        with pytest.raises(CannotLoad, match="broken"):
            wait(models, "bad")
    assert models.loaded("bad") is None
    assert models.loaded() == "backend of a"
    assert calls == ["a", "bad", "bad"]


def test_at_most_two_are_kept_the_default_always() -> None:
    calls: list[str] = []
    models = Models(loading(calls), "a", ("a", "b", "c"))
    for name in ("a", "b", "c"):
        wait(models, name)
    models.begin("a")
    assert models.loaded("a") is not None
    assert models.loaded("c") is not None
    assert models.loaded("b") is None


def test_where_names_are_closed_only_the_list_is_accepted() -> None:
    calls: list[str] = []
    models = Models(loading(calls), "a", ("a", "b"), open_names=False)
    assert wait(models, "b") == "backend of b"
    with pytest.raises(BackendError, match="only the models in its list"):
        wait(models, "/etc")
    assert calls == ["b"]
