"""Where the weights of one model lie when one device does not hold them: over GPUs, CPU memory and disk.

accelerate places whole modules and fetches what lies elsewhere before each forward (its device maps); this
module says how much each place may take, and afterwards what each one holds. Knows no files and no run.
"""

import re
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from playground.engine import devices
from playground.engine.progress import UnknownChoice

DISK = "disk"
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LIMIT = re.compile(rf"(cpu|cuda:(\d{{1,3}}))=(\d{{1,9}}(?:\.\d{{1,3}})?) ?({'|'.join(_UNITS)})")


@dataclass(frozen=True, slots=True)
class Spread:
    """How the weights may be placed.

    `limits_bytes` are the most for each place, filled in this order, the rest on disk; None is all that is
    free on every GPU, then in CPU memory.
    """

    limits_bytes: dict[str, int] | None = None

    @property
    def place(self) -> torch.device:
        """The device that computes: the first GPU that may be used, else the CPU."""
        first, *_ = [devices.choose_device(name) for name in self.limits_bytes or ("auto",)]
        return first

    def placed(self, read: Callable[..., tuple[Any, Any]]) -> tuple[Any, Any]:
        """What `read` returns, a module first; it is called with what `from_pretrained` is to be told.

        What is converted on its way to the disk lies in a folder that goes with the module.
        """
        given = self.limits_bytes
        limits = {_key(name): size for name, size in given.items()} if given is not None else None
        folder = tempfile.mkdtemp(prefix="first-token-")
        drop = partial(shutil.rmtree, folder, ignore_errors=True)
        try:
            module, found = read(device_map="auto", max_memory=limits, offload_folder=folder)
        except BaseException:
            drop()
            raise
        weakref.finalize(module, drop)
        return module, found


def read_limits(text: str) -> dict[str, int] | None:
    """`auto` is None; else the places and their most bytes, as `cuda:0=20GiB,cpu=64GiB`; raises `UnknownChoice`."""
    if text == "auto":
        return None
    limits: dict[str, int] = {}
    for part in text.split(","):
        found = _LIMIT.fullmatch(part.strip())
        if found is None or found[1] in limits:
            raise UnknownChoice(
                f"FIRST_TOKEN_DEVICE_MAP cannot be {text[:60]!r}, so nothing was changed: it is auto, or the most for "
                "each place, as in cuda:0=20GiB,cpu=64GiB; the rest lies on disk."
            )
        limits[found[1]] = int(float(found[3]) * _UNITS[found[4]])
    return dict(sorted(limits.items(), key=lambda limit: (limit[0] == "cpu", limit[0])))


def computing_device(module: Any) -> torch.device:
    """Where `module` takes its ids and gives its logits."""
    found: torch.device = module.device
    if found.type != "meta":
        return found
    # Its first weights are fetched from elsewhere: the device is the first one of the map that computes.
    places = map(_name, getattr(module, "hf_device_map", {}).values())
    return torch.device(min((place for place in places if place.startswith("cuda")), default="cpu"))


def weights_by_place(module: Any) -> tuple[tuple[str, int], ...]:
    """(`cuda:0`, `cpu` or `disk`, bytes) of a model that is spread; nothing where all lies on one device."""
    placed: dict[str, Any] = getattr(module, "hf_device_map", None) or {}
    held: Counter[str] = Counter()
    for name, weight in module.named_parameters():
        above = [part for part in placed if not part or name == part or name.startswith(f"{part}.")]
        if above:
            held[_name(placed[max(above, key=len)])] += weight.numel() * weight.element_size()
    if set(held) == {str(computing_device(module))}:
        return ()
    return tuple(sorted(held.items(), key=lambda each: (each[0] == DISK, each[0] == "cpu", each[0])))


def _key(name: str) -> str | int:
    """A place as accelerate names it."""
    return int(name.removeprefix("cuda:")) if name.startswith("cuda:") else name


def _name(key: Any) -> str:
    return f"cuda:{key}" if isinstance(key, int) else str(key)
