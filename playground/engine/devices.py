"""Which device, which dtype, how many threads, how much memory.

Knows sizes and hardware, and no model.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from playground.engine import int8
from playground.engine.progress import CannotLoad, UnknownChoice

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SMALL_MODEL_BYTES = 2 * 2**30
"""Up to this size in float32 a model runs in float32 on a GPU too: exactness is cheap there."""

_CPU_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
_MEMORY_USED = Path("/sys/fs/cgroup/memory.current")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of one device. `free_bytes` is what a new model could take now."""

    total_bytes: int
    free_bytes: int


def choose_device(wanted: str = "auto") -> torch.device:
    """The device for `auto` (CUDA, then MPS, then CPU), or the one asked for if it is there."""
    if wanted == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "mps" if _has_mps() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda", "mps"):
        raise UnknownChoice(
            f"Device {wanted!r} is not known; nothing was changed: use auto, cpu, cuda, cuda:N or mps."
        )
    no_cuda = device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count()
    if no_cuda or (device.type == "mps" and not _has_mps()):
        raise CannotLoad(
            f"There is no device {wanted!r} on this machine; nothing was changed: use --device auto."
        )
    return torch.device("cuda:0") if wanted == "cuda" else device


def require_dtype(wanted: str) -> None:
    """Refuse a dtype that cannot be asked for."""
    if wanted not in ("auto", *DTYPES, int8.NAME):
        raise UnknownChoice(
            f"dtype {wanted!r} is not known; nothing was changed: use auto, {', '.join(DTYPES)} or {int8.NAME}."
        )


def choose_dtype(wanted: str, device: torch.device, numbers: int, own: str | None) -> str:
    """The dtype's name for a model of `numbers` weights whose checkpoint is stored as `own`.

    `auto`: float32 where the model fits comfortably (on a CPU half of the free memory, on a GPU
    2 GiB), because equality of lanes, branches and cached runs holds only there; else 16-bit.
    """
    if wanted != "auto":
        return wanted
    comfortable = memory(device).free_bytes // 2 if device.type == "cpu" else SMALL_MODEL_BYTES
    if numbers * 4 <= comfortable:
        return "float32"
    if device.type == "mps" or (device.type == "cuda" and not torch.cuda.is_bf16_supported()):
        return "float16"
    return own if own in ("bfloat16", "float16") else "bfloat16"


def memory(device: torch.device) -> Memory:
    """What `device` has; a container's own limit counts where it is lower than the machine's."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return Memory(total, free)
    machine = psutil.virtual_memory()
    limit, used = _number_in(_MEMORY_LIMIT), _number_in(_MEMORY_USED)
    if limit is None or limit >= machine.total:
        return Memory(machine.total, machine.available)
    return Memory(limit, max(0, min(machine.available, limit - (used or 0))))


def memory_together() -> Memory:
    """Every CUDA device and the CPU's memory, which accelerate fills in that order."""
    places = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    found = [memory(place) for place in (*places, torch.device("cpu"))]
    return Memory(sum(m.total_bytes for m in found), sum(m.free_bytes for m in found))


def device_name(device: torch.device) -> str:
    """The device as a person would name it."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    if device.type == "mps":
        return "Apple GPU"
    cores = core_count()
    return f"CPU, {cores} core{'s' if cores > 1 else ''}"


def core_count() -> int:
    """CPU cores that this process may use: its affinity, or a container's quota where lower."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = _CPU_QUOTA.read_text(encoding="ascii").split()
        return max(1, min(cores, round(int(quota) / int(period))))
    except (OSError, ValueError):
        return cores


def set_threads(wanted: int | None, *, leave_a_core: bool = False) -> int:
    """Set torch's CPU threads to `wanted`, else to the cores, and say how many.

    `leave_a_core` is for a page that is watched from the same machine: with every core busy the small
    operations stall at OpenMP's barriers. On 2 cores a step of the default model took 35 ms with two
    threads and 57 with one while nothing else ran, and 79 and 62 with the page open in a browser.
    """
    cores = core_count()
    threads = wanted or (max(1, cores - 1) if leave_a_core else cores)
    torch.set_num_threads(threads)
    return threads


def _has_mps() -> bool:
    return torch.backends.mps.is_available()


def _number_in(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
