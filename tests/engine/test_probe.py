"""The probe: what it counts and where it runs. How fast this machine is, is nobody's test."""

import threading
from collections.abc import Callable, Iterator

import pytest
import torch

from playground.engine import probe as probing
from playground.engine.devices import Memory
from playground.engine.model import LoadedModel
from playground.engine.probe import known, probe, probe_device
from playground.engine.turns import Turns


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(probing, "_known", {})
    monkeypatch.setattr(probing, "_READ_BYTES", {"cpu": 2**20})
    monkeypatch.setattr(probing, "_SIDE", {"cpu": 64})
    yield


def test_it_is_measured_once_for_a_device_and_dtype(
    make_model: Callable[..., LoadedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model()
    assert known(model) is None
    found = probe(model)
    assert found.measured and found.bytes_per_second > 0 and found.flops_per_second > 0
    monkeypatch.setattr(probing, "_seconds", lambda *_: pytest.fail("measured again"))
    assert probe(model) is found is known(model)


def test_rates_are_amounts_over_the_median_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call, which pays for what happens once, is left out."""
    times = iter([99.0, *[3.0, 1.0, 2.0, 5.0, 4.0, 7.0, 6.0] * 3])
    monkeypatch.setattr(probing, "_seconds", lambda *_: next(times))
    monkeypatch.setattr(probing, "_SECONDS_LIMIT", 100.0)
    work = probing._Work(lambda: None, 1000)
    assert probing._rate(work, torch.device("cpu"), Turns()) == 1000 / 4.0


def test_a_slow_device_is_asked_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    monkeypatch.setattr(probing, "_seconds", lambda *_: calls.append(10.0) or 10.0)
    probing._rate(probing._Work(lambda: None, 1), torch.device("cpu"), Turns())
    assert len(calls) == 4


def test_amounts_are_what_is_read_and_multiplied() -> None:
    device = torch.device("cpu")
    ways = probing._readings(device)
    assert [way.amount for way in ways] == [2**20] * 3
    assert float(ways[0].run()) == 2**18  # type: ignore[arg-type]
    assert float(ways[1].run()) == 2**17  # type: ignore[arg-type]
    assert probing._product(device, torch.bfloat16).amount == 2 * 64**3


def test_everything_runs_on_the_models_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[str] = set()
    original = probing._seconds

    def seconds(work: probing._Work, device: torch.device) -> float:
        threads.add(threading.current_thread().name)
        return original(work, device)

    monkeypatch.setattr(probing, "_seconds", seconds)
    probe_device(torch.device("cpu"), "float32", Turns())
    assert len(threads) == 1 and threads.pop().startswith("forwards")


def test_a_full_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing.devices, "memory", lambda _: Memory(2**30, 2**20))
    with pytest.raises(MemoryError):
        probe_device(torch.device("cpu"), "float32", Turns())
