"""How fast this device reads memory and multiplies matrices: measured, in a second or two.

Read bandwidth is that of the fastest of three ways to read a block of memory that is larger than caches
(in float32: bytes are bytes, and some of torch's 16-bit kernels compute more than they read); the matrix
rate is that of one large square product in the model's dtype. Medians, with the threads that torch has and
on the thread that runs the model's forwards, so that no second pool of workers disturbs them.

Kept for the life of the process and not on disk: what else runs on the machine, the threads and the clock
of the processor change between two starts, and a second is cheap. Knows no model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from threading import Lock
from time import perf_counter

import torch

from playground.core.cost import Device
from playground.engine import devices
from playground.engine.model import LoadedModel
from playground.engine.turns import Turns

_READ_BYTES = {"cpu": 2**29, "cuda": 2**31, "mps": 2**29}
"""More than the last-level cache."""
_LEAST_BYTES = 2**20
_COLUMNS = 4096
_SIDE = {"cpu": 1024, "cuda": 8192, "mps": 4096}
_REPEATS, _SECONDS_LIMIT = 7, 0.5
_MEMORY_SHARE = 0.25
"""Of what is free, at most."""

_known: dict[tuple[str, str, int], Device] = {}
_one_at_a_time = Lock()


def probe(model: LoadedModel) -> Device:
    """The rates of the device of `model` in the dtype of its weights; measured once a process.

    Raises `MemoryError` where there is not enough of it for the probe.
    """
    return probe_device(model.device, model.facts.dtype, model.turns)


def known(model: LoadedModel) -> Device | None:
    """What `probe` has measured already; measures nothing."""
    return _known.get(_key(model.device, model.facts.dtype))


def probe_device(device: torch.device, dtype: str, turns: Turns) -> Device:
    """As `probe`; each measurement is a turn of its own, so that runs go on in between."""
    key = _key(device, dtype)
    with _one_at_a_time:
        if key not in _known:
            kind = devices.DTYPES[dtype]
            reading = max(_rate(work, device, turns) for work in turns.take(lambda: _readings(device)))
            product = turns.take(lambda: _product(device, kind))
            _known[key] = Device(reading, _rate(product, device, turns))
    return _known[key]


@dataclass(frozen=True, slots=True)
class _Work:
    """Something to time, and how much of it one call does: bytes, or operations."""

    run: Callable[[], object]
    amount: int


def _key(device: torch.device, dtype: str) -> tuple[str, str, int]:
    return str(device), dtype, torch.get_num_threads()


@torch.inference_mode()
def _readings(device: torch.device) -> list[_Work]:
    """The same block read as a sum, as a product of two vectors, and as a matrix times a vector."""
    size = min(_READ_BYTES[device.type], int(devices.memory(device).free_bytes * _MEMORY_SHARE))
    if size < _LEAST_BYTES:
        raise MemoryError("there is not enough memory to measure the read bandwidth")
    matrix = torch.ones(size // (4 * _COLUMNS), _COLUMNS, device=device)
    vector, (one, other) = torch.ones(_COLUMNS, device=device), matrix.view(2, -1)
    ways = (matrix.sum, lambda: torch.dot(one, other), lambda: torch.mv(matrix, vector))
    return [_Work(way, matrix.nbytes) for way in ways]


@torch.inference_mode()
def _product(device: torch.device, dtype: torch.dtype) -> _Work:
    side = _SIDE[device.type]
    one, other = (torch.ones(side, side, dtype=dtype, device=device) for _ in range(2))
    return _Work(lambda: one @ other, 2 * side**3)


def _rate(work: _Work, device: torch.device, turns: Turns) -> float:
    """Median amount a second over several calls, the first one apart."""
    turns.take(lambda: _seconds(work, device))
    times: list[float] = []
    while len(times) < _REPEATS and (len(times) < 3 or sum(times) < _SECONDS_LIMIT):
        times.append(turns.take(lambda: _seconds(work, device)))
    return work.amount / median(times)


@torch.inference_mode()
def _seconds(work: _Work, device: torch.device) -> float:
    settle(device)
    began = perf_counter()
    work.run()
    settle(device)
    return max(perf_counter() - began, 1e-9)


def settle(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
