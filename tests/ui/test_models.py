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


def loading(calls: list[str], **broken: Exception) -> Any:
    def load(name: str, report: Any) -> Any:
        calls.append(name)
        if name == "bad":
            raise CannotLoad("It is broken.")
        if name in broken:
            raise broken[name]
        return f"backend of {name}"

    return load


def test_a_model_is_loaded_once() -> None:
    calls: list[str] = []
    models = Models(loading(calls), "a")
    models.begin()
    assert wait(models) == wait(models, "a") == models.loaded() == "backend of a"
    assert calls == ["a"]


def test_a_failure_is_told_and_tried_again_and_the_running_model_stays() -> None:
    """Case 29."""
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
    assert models.loaded("a") is not None
    assert models.loaded("c") is not None
    assert models.loaded("b") is None


def test_a_failed_load_takes_no_place_of_a_model_that_is_there() -> None:
    """Case 29: the model that was picked before stays loaded, whatever was tried after it."""
    calls: list[str] = []
    models = Models(loading(calls), "a", ("a", "b", "c"))
    for name in ("a", "b"):
        wait(models, name)
    for _ in range(3):
        with pytest.raises(CannotLoad):
            wait(models, "bad")
        wait(models, "a")
    assert models.loaded("b") == "backend of b"
    wait(models, "c")
    assert [name for name in "abc" if models.loaded(name) is not None] == ["a", "c"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError(36, "File name too long"), "File name too long"),
        (RuntimeError("secret detail"), "RuntimeError"),
    ],
)
def test_an_unexpected_error_is_a_sentence_and_logged(
    error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    models = Models(loading([], boom=error), "a")
    with pytest.raises(CannotLoad) as raised:
        wait(models, "boom")
    assert str(raised.value).startswith(f"'boom' could not be loaded ({reason}); nothing was changed")
    assert "secret" not in str(raised.value)
    assert type(error).__name__ in caplog.text


def test_a_default_that_failed_is_tried_again() -> None:
    calls: list[str] = []
    broken: dict[str, Exception] = {"a": CannotLoad("The network is down.")}
    models = Models(lambda name, report: loading(calls, **broken)(name, report), "a")
    with pytest.raises(CannotLoad):
        wait(models)
    broken.clear()
    assert wait(models) == models.loaded() == "backend of a"


def test_where_names_are_closed_only_the_list_is_accepted() -> None:
    calls: list[str] = []
    models = Models(loading(calls), "a", ("a", "b"), open_names=False)
    assert wait(models, "b") == "backend of b"
    with pytest.raises(BackendError, match="only the models in its list"):
        wait(models, "/etc")
    assert calls == ["b"]
