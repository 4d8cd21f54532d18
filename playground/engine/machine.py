"""What this machine is, as far as speed and memory depend on it. Knows no model."""

from dataclasses import dataclass
from platform import machine as architecture
from platform import platform, python_version

import torch
import transformers

from playground.engine import devices


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device. `free_bytes` is what a new model could take now."""

    name: str
    title: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class Machine:
    """System, versions and devices; the first device is the one that `auto` takes."""

    system: str
    architecture: str
    python: str
    torch: str
    transformers: str
    cores: int
    cuda_build: str | None
    devices: tuple[DeviceFacts, ...]


def machine() -> Machine:
    """Look at this machine."""
    return Machine(
        system=platform(terse=True),
        architecture=architecture(),
        python=python_version(),
        torch=torch.__version__,
        transformers=transformers.__version__,
        cores=devices.core_count(),
        cuda_build=torch.version.cuda,
        devices=tuple(_facts(device) for device in _all_devices()),
    )


def _all_devices() -> list[torch.device]:
    found = [torch.device("cuda", index) for index in range(torch.cuda.device_count())]
    auto = devices.choose_device()
    return found + [auto] * (auto.type == "mps") + [torch.device("cpu")]


def _facts(device: torch.device) -> DeviceFacts:
    memory = devices.memory(device)
    return DeviceFacts(str(device), devices.device_name(device), memory.total_bytes, memory.free_bytes)
