"""Experiments from the page: one at a time, superseded like runs, kept for the session and for nobody else."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from playground.backends.protocol import BackendError
from playground.core.control import Control
from playground.core.decoding import InvalidSetting
from playground.core.experiment import Progressed
from playground.ui.experiments import SESSIONS_LIMIT, Done, Experiments, Progress, Waiting
from playground.ui.session import Tab


def counting(total: int = 4, result: Any = "result") -> Any:
    """An experiment of `total` measurements that stops when it is told to, and has what it measured."""

    def measure(backend: Any, control: Control) -> Iterator[Any]:
        for done in range(1, total + 1):
            if control.stopped:
                yield f"stopped after {done - 1}"
                return
            yield Progressed(done, total, 32 * done, 0.01)
        yield result

    return measure


@pytest.fixture
def experiments(serviced: Any, echo: Any) -> Experiments:
    service = serviced(echo())
    list(service.introduce(Tab("0" * 32)))
    return Experiments(service)


def test_progress_then_the_result_which_is_kept(experiments: Experiments, tab: Tab) -> None:
    *progress, done = experiments.run(tab, "prefill", None, counting())
    assert [told.latest.done for told in progress if isinstance(told, Progress)] == [1, 2, 3, 4]
    assert done == Done("result")
    assert experiments.kept(tab, "prefill") == "result"
    assert experiments.kept(tab, "steps") is None


def test_the_time_left_is_zero_at_the_end(experiments: Experiments, tab: Tab) -> None:
    *progress, _ = experiments.run(tab, "prefill", None, counting())
    left = [told.left_seconds for told in progress if isinstance(told, Progress)]
    assert left[-1] == 0
    assert all(seconds is not None and seconds >= 0 for seconds in left)


def test_another_session_has_no_part_in_it(experiments: Experiments, tab: Tab) -> None:
    list(experiments.run(tab, "prefill", None, counting()))
    assert experiments.kept(Tab("f" * 32), "prefill") is None


def test_a_stop_ends_it_with_what_was_measured(experiments: Experiments, tab: Tab) -> None:
    run = experiments.run(tab, "prefill", None, counting())
    next(run)
    experiments.stop(tab)
    assert list(run)[-1] == Done("stopped after 1")


def test_a_strangers_stop_stops_nothing(experiments: Experiments, tab: Tab) -> None:
    run = experiments.run(tab, "prefill", None, counting())
    next(run)
    experiments.stop(Tab("f" * 32))
    assert list(run)[-1] == Done("result")


def test_a_stop_that_was_overtaken_stops_nothing(experiments: Experiments, tab: Tab) -> None:
    run = experiments.run(replace(tab, wish=7), "prefill", None, counting())
    next(run)
    experiments.stop(replace(tab, wish=6))
    assert list(run)[-1] == Done("result")


def test_a_new_one_supersedes_the_old_one(experiments: Experiments, tab: Tab) -> None:
    first = experiments.run(tab, "prefill", None, counting())
    next(first)
    told: list[Any] = []
    second = threading.Thread(target=lambda: told.extend(experiments.run(tab, "steps", None, counting(2))))
    second.start()
    rest = []
    while not any(isinstance(one, Done) for one in rest):
        if told:  # the second one waits for the device by now, so the first has been stopped
            rest += list(first)
    second.join(10)
    assert rest[-1] == Done("stopped after 1")
    assert told[-1] == Done("result")
    assert any(isinstance(one, Waiting) for one in told)


def test_two_sessions_measure_one_after_the_other(experiments: Experiments, tab: Tab) -> None:
    first = experiments.run(tab, "prefill", None, counting())
    next(first)
    second = experiments.run(Tab("f" * 32), "prefill", None, counting())
    assert isinstance(next(second), Waiting)
    assert list(first)[-1] == Done("result")
    assert list(second)[-1] == Done("result")


def test_who_waits_can_be_stopped(experiments: Experiments, tab: Tab) -> None:
    first = experiments.run(tab, "prefill", None, counting())
    next(first)
    other = Tab("f" * 32)
    second = experiments.run(other, "prefill", None, counting())
    next(second)
    experiments.stop(other)
    assert list(second) == [Done(None)]
    assert list(first)[-1] == Done("result")


def test_a_closed_page_frees_the_device(experiments: Experiments, tab: Tab) -> None:
    first = experiments.run(tab, "prefill", None, counting())
    next(first)
    first.close()  # type: ignore[attr-defined]
    assert list(experiments.run(tab, "prefill", None, counting(1)))[-1] == Done("result")


def test_an_experiment_that_fails_frees_the_device(experiments: Experiments, tab: Tab) -> None:
    def broken(backend: Any, control: Control) -> Iterator[Any]:
        yield Progressed(1, 2)
        raise BackendError("There is not enough memory for it; nothing was changed.")

    with pytest.raises(BackendError, match="memory"):
        list(experiments.run(tab, "prefill", None, broken))
    assert list(experiments.run(tab, "prefill", None, counting(1)))[-1] == Done("result")


def test_without_a_model_there_is_a_sentence(serviced: Any, tab: Tab) -> None:
    service = serviced(loader=lambda name, report: threading.Event().wait(60))
    with pytest.raises(BackendError, match="No model is loaded yet"):
        next(Experiments(service).run(tab, "prefill", None, counting()))


def test_without_a_session_there_is_a_sentence(experiments: Experiments) -> None:
    with pytest.raises(InvalidSetting, match="reload"):
        next(experiments.run(Tab(), "prefill", None, counting()))


def test_only_so_many_sessions_are_remembered(experiments: Experiments, tab: Tab) -> None:
    experiments.keep(tab, "prefill", 1)
    for number in range(SESSIONS_LIMIT):
        experiments.keep(Tab(f"{number:032x}"), "prefill", number)
    assert experiments.kept(tab, "prefill") is None
    assert experiments.kept(Tab(f"{5:032x}"), "prefill") == 5
