"""Runs across a process boundary like ZeroGPU's (`tests/spaces/stand_in`): the same events, held back and refused."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from playground.backends.hosted import Runs
from playground.backends.local import LocalBackend
from playground.backends.protocol import BackendError
from playground.core.branch import continued
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.events import Event, Failed, Finished, Prefilled, Started, Stepped
from playground.core.request import Request
from playground.core.run import fold
from playground.engine.forked import twin
from playground.ui.sentences import translated
from tests.engine.conftest import byte_level_tokenizer, loaded, tiny_module

STAND_IN = Path(__file__).parents[1] / "spaces" / "stand_in"
LANES = (
    Decoding(seed=1, max_new_tokens=12),
    replace(GREEDY, seed=2, max_new_tokens=20),
    Decoding(seed=3, max_new_tokens=5),
)
THREE = Request("hello", LANES, chat=False, run="r")
LONG = Request("hello", (Decoding(seed=1, max_new_tokens=400),), chat=False)


@pytest.fixture(scope="module")
def zero() -> Iterator[Any]:
    """`playground.backends.zero` over the stand-in, which is gone again afterwards."""
    before = {name: sys.modules.pop(name, None) for name in ("spaces", "playground.backends.zero")}
    sys.path.insert(0, str(STAND_IN))
    try:
        yield import_module("playground.backends.zero")
    finally:
        sys.path.remove(str(STAND_IN))
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


@pytest.fixture(scope="module")
def platform(zero: Any) -> Any:
    return sys.modules["spaces"]


def tiny() -> Any:
    tokenizer = byte_level_tokenizer()
    model = loaded(tiny_module(len(tokenizer)), tokenizer)
    model.stop_ids = frozenset()
    return model


@pytest.fixture(scope="module")
def backend(zero: Any) -> Any:
    return zero.ZeroBackend(tiny())


def without_clocks(event: Event) -> Event:
    clocks = [name for name in event.__dataclass_fields__ if name.endswith("seconds")]
    return replace(event, **dict.fromkeys(clocks, 0.0))


def test_the_events_are_those_of_the_local_engine_but_for_clocks(backend: Any) -> None:
    expected = [without_clocks(event) for event in LocalBackend(tiny()).stream(THREE, Control())]
    found = [without_clocks(event) for event in backend.stream(THREE, Control())]
    assert found == expected
    assert sum(isinstance(event, Stepped) for event in found) > 20


def test_seeds_are_drawn_once_and_the_prompt_keeps_its_own_words(backend: Any) -> None:
    run = fold(backend.stream(Request("hello", (Decoding(max_new_tokens=3),), chat=True), Control()))
    assert run.started is not None and run.started.request.lanes[0].seed is not None
    assert 0 < sum(run.started.own) < len(run.started.own)
    assert run.prefilled is not None and run.prefilled.queue_seconds > 0


def test_a_run_goes_on_by_reading_again(backend: Any) -> None:
    first = fold(backend.stream(replace(THREE, lanes=THREE.lanes[:1]), Control()))
    whole = first.lanes[0].token_ids
    again = fold(backend.stream(continued(first, 5), Control()))
    assert again.prefilled is not None and again.prefilled.tokens_reused == 0
    assert [note.key for note in again.prefilled.notes] == ["again_gone"]
    assert whole[5:] == again.lanes[0].token_ids[: len(whole) - 5]


def test_a_pause_holds_back_what_has_been_made_and_a_stop_cuts_it_off(backend: Any) -> None:
    control = Control()
    events = backend.stream(LONG, control)
    seen = [next(events) for _ in range(6)]
    control.stop()
    seen += events
    *_, last = seen
    assert isinstance(last, Finished) and last.reason == "cancelled"
    steps = [event for event in seen if isinstance(event, Stepped)]
    assert last.text == "".join(step.text for step in steps)
    assert fold(seen).done and len(steps) < 400


def test_single_steps_of_a_hosted_run_reveal_one_token_each(backend: Any) -> None:
    runs = Runs()
    run = runs.start("a", backend, replace(LONG, lanes=(Decoding(seed=1, max_new_tokens=6),)), manner="step")
    reader = run.follow(interval_seconds=0.001)
    for wanted in (1, 2, 3):
        while len(run.run.lanes[0].steps if run.run.lanes else ()) < wanted:
            next(reader)
        for _ in range(2):  # two heartbeats: nothing more comes by itself
            next(reader)
        assert len(run.run.lanes[0].steps) == wanted
        run.step()
    run.play()
    assert run.ended(20)
    assert len(run.run.lanes[0].steps) == 6
    runs.forget("a")


def test_more_tokens_lanes_and_weights_ask_for_a_longer_time(zero: Any) -> None:
    small = zero.Wanted(1, "tiny", "float32", 0)
    few = zero.duration_seconds(small, Request("x", (Decoding(max_new_tokens=10),)), 5)
    assert 10 <= few <= 12
    many = Request("x", (Decoding(max_new_tokens=1000), Decoding(max_new_tokens=10)))
    assert zero.duration_seconds(small, many, 5) > few + 20
    assert zero.duration_seconds(replace(small, weights_bytes=16 * 10**9), many, 5) > 40


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("seconds_left", 3.0, "comes back in 5:43:21"),
        ("longest_seconds", 3.0, "ask for fewer tokens or lanes"),
    ],
)
def test_what_the_platform_refuses_is_one_plain_sentence(
    backend: Any, platform: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: float, words: str
) -> None:
    monkeypatch.setattr(platform, name, value)
    runs = Runs()
    run = runs.start("a", backend, LONG)
    assert run.ended(20)
    (failed,) = run.events
    assert isinstance(failed, Failed) and words in failed.message
    assert "recorded runs" in failed.message and "<" not in failed.message
    assert translated(failed.message, "zh") != failed.message


def test_a_queue_that_gives_no_gpu_is_a_plain_sentence(
    backend: Any, platform: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The platform's client says so with an error of no title, when the visitor's page has gone meanwhile."""

    def left(seconds: float) -> None:
        raise RuntimeError("Connection closed by visitor while queueing")

    monkeypatch.setattr(platform, "_schedule", left)
    with pytest.raises(BackendError, match="No GPU was free"):
        list(backend.stream(LONG, Control()))


def test_an_error_of_ours_stays_an_error(
    backend: Any, platform: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "_schedule", lambda seconds: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(backend.stream(LONG, Control()))


def test_a_worker_that_dies_keeps_what_it_had(backend: Any, platform: Any) -> None:
    events = backend.stream(LONG, Control())
    seen = [next(events) for _ in range(5)]
    platform.calls[-1].kill()
    with pytest.raises(BackendError, match="taken back before the run ended"):
        seen += events
    assert isinstance(seen[0], Started) and any(isinstance(event, Prefilled) for event in seen)


def test_a_wrong_request_takes_no_gpu(backend: Any, platform: Any) -> None:
    before = len(platform.asked)
    with pytest.raises(BackendError, match="empty"):
        backend.stream(Request("", chat=False), Control())
    with pytest.raises(InvalidSetting, match="top_p"):
        backend.stream(Request("hello", (Decoding(top_p=2),)), Control())
    assert len(platform.asked) == before


def test_a_twin_shares_the_weights_and_no_thread_lock_or_cache() -> None:
    model = tiny()
    other = twin(model, "cpu")
    assert other.module is model.module and other.vocabulary is model.vocabulary
    assert (
        other.turns is not model.turns and other.caches is not model.caches and other.kept is not model.kept
    )
