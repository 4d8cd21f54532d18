"""The engine behind the protocol, and hosted: a tiny model built here, no download."""

import time
from collections.abc import Iterator

import pytest

from playground.backends.hosted import HostedRun, Runs
from playground.backends.local import LocalBackend
from playground.backends.protocol import Backend, BackendError
from playground.core.branch import continued
from playground.core.control import Control
from playground.core.decoding import GREEDY, Decoding, InvalidSetting
from playground.core.events import Event, Finished, Stepped
from playground.core.request import Request
from playground.core.run import fold
from tests.engine.conftest import byte_level_tokenizer, loaded, tiny_module

LONG = Request("hello", (Decoding(seed=1, max_new_tokens=250),), chat=False)


@pytest.fixture(scope="module")
def backend() -> Backend:
    tokenizer = byte_level_tokenizer()
    model = loaded(tiny_module(len(tokenizer)), tokenizer)
    model.stop_ids = frozenset()
    return LocalBackend(model)


@pytest.fixture
def runs() -> Iterator[Runs]:
    runs = Runs()
    yield runs
    for session in ("a", "b"):
        runs.forget(session)


def steps_of(run: HostedRun) -> int:
    return sum(isinstance(event, Stepped) for event in run.run.events)


def follow_until(run: HostedRun, steps: int) -> Iterator[tuple[int, list[Event]]]:
    follower = run.follow(interval_seconds=0.001)
    while steps_of(run) < steps:
        next(follower)
    return follower


def test_tokens_are_those_that_a_run_reads(backend):
    for chat in (True, False):
        tokens, own = backend.tokenize("hello world", chat=chat, system=None)
        run = fold(backend.stream(Request("hello world", (GREEDY,), chat=chat), Control()))
        assert run.started.prompt == tuple(tokens)
        assert run.started.own == tuple(own)
    assert backend.facts() == run.started.model


@pytest.mark.parametrize("prompt", ["", "\ud800", "x" * 400_001])
def test_refusals_are_backend_errors_in_one_sentence(backend, prompt):
    for ask in (
        lambda: backend.tokenize(prompt, chat=False, system=None),
        lambda: backend.stream(Request(prompt, chat=False), Control()),
    ):
        with pytest.raises(BackendError) as refusal:
            ask()
        assert str(refusal.value).endswith(".")
        assert len(str(refusal.value)) < 200


def test_a_setting_out_of_range_is_named(backend):
    with pytest.raises(InvalidSetting, match="top_p"):
        backend.stream(Request("hello", (Decoding(top_p=2),)), Control())


def test_a_refused_request_starts_no_hosted_run(backend, runs):
    with pytest.raises(BackendError, match="empty"):
        runs.start("a", backend, Request(""))
    assert runs.latest("a") is None


@pytest.mark.alone
def test_closing_the_page_holds_the_engine_and_a_reload_goes_on(backend, runs):
    began = time.monotonic()
    run = runs.start("a", backend, LONG)
    follow_until(run, 5).close()
    at_close = steps_of(run)
    time.sleep(0.05)  # for the step that was going on
    held = steps_of(run)
    time.sleep(0.2)
    assert steps_of(run) == held <= at_close + 1
    assert not run.done
    seen = [event for _, batch in run.follow(0, 0.001) for event in batch]
    assert seen == run.run.events
    assert run.run.lanes[0].finish_reason == "max_new_tokens"
    assert steps_of(run) == 250
    unwatched_seconds = 0.2
    assert run.run.lanes[0].finished.seconds < time.monotonic() - began - unwatched_seconds


def test_stop_and_restart_at_once_ten_times(backend, runs):
    for _ in range(10):
        run = runs.start("a", backend, LONG)
        follower = follow_until(run, 3)
        at_stop = steps_of(run)
        assert runs.stop("a")
        last = [event for _, batch in follower for event in batch][-1]
        assert isinstance(last, Finished)
        assert last.reason == "cancelled"
        assert steps_of(run) <= at_stop + 1
        assert len(run.run.lanes[0].steps) == steps_of(run)


def test_two_sessions_advance_together_and_alike(backend, runs):
    a, b = runs.start("a", backend, LONG), runs.start("b", backend, LONG)
    follow_until(b, 20).close()
    assert 0 < steps_of(a) < 250
    for run in (a, b):
        list(run.follow())
    assert a.run.lanes[0].token_ids == b.run.lanes[0].token_ids
    assert a.id != b.id


def test_a_hosted_run_is_continued_from_its_cache_until_it_is_forgotten(runs, backend):
    """`Request.parent` reaches the engine as it is; the cache goes with the run."""
    first = runs.start("a", backend, Request("hello", (Decoding(seed=1, max_new_tokens=12),), chat=False))
    for _ in first.follow():
        pass
    second = runs.start("a", backend, continued(first.run, 6))
    for _ in second.follow():
        pass
    started, prefilled = second.run.started, second.run.prefilled
    assert started.request.parent.run == first.id and started.request.parent.step == 6
    assert prefilled.tokens_computed == 1 and prefilled.notes == ()
    assert second.run.lanes[0].token_ids[:6] == first.run.lanes[0].token_ids[6:]
    again = continued(first.run, 6)
    runs.forget("a")
    anew = fold(backend.stream(again, Control()))
    assert [note.key for note in anew.notes] == ["again_gone"]
    assert anew.lanes[0].token_ids == second.run.lanes[0].token_ids
