"""What a weight file says about itself, read from its header alone.

Counts the weights before anything is loaded, and finds files that are cut short. Knows no model
class and no device.
"""

import json
import struct
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from playground.engine.progress import CannotLoad

_HEADER_LIMIT_BYTES = 100 * 2**20
_DTYPE_NAMES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}


@dataclass(frozen=True, slots=True)
class Weights:
    """`numbers` scalars lie in `files` of `file_bytes` together, most of them as `dtype`
    (None where that is no torch float, as in a quantised file)."""

    files: tuple[Path, ...]
    file_bytes: int
    numbers: int
    dtype: str | None


def in_folder(folder: Path) -> Weights | None:
    """The safetensors of a model folder, or None where it has none or not all of them.

    Raises `CannotLoad` for a file that is cut short or unreadable.
    """
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        names = ["model.safetensors"]
    elif index.is_file():
        names = sorted(set(_json_object(index, "weight_map").values()))
    else:
        return None
    files = tuple(folder / str(name) for name in names)
    if not all(file.parent == folder and file.is_file() for file in files):
        return None
    counts: Counter[str] = Counter()
    for file in files:
        counts.update(_safetensors_counts(file))
    return Weights(files, sum(f.stat().st_size for f in files), sum(counts.values()), _main_dtype(counts))


def in_gguf(file: Path) -> Weights:
    """The tensors of a GGUF file; `numbers` are those after dequantisation."""
    from gguf import GGUFReader

    try:
        reader = GGUFReader(file)
        numbers = sum(int(tensor.n_elements) for tensor in reader.tensors)
    except Exception as error:  # the reader raises whatever its arrays raise
        raise _broken(file) from error
    if not numbers:
        raise _broken(file)
    return Weights((file,), file.stat().st_size, numbers, None)


def _safetensors_counts(file: Path) -> Counter[str]:
    """Scalars of each stored dtype."""
    counts: Counter[str] = Counter()
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > _HEADER_LIMIT_BYTES:
                raise ValueError("header too long")
            header = json.loads(stream.read(length))
        ends = [0]
        for name, tensor in header.items():
            if name != "__metadata__":
                counts[tensor["dtype"]] += prod(tensor["shape"])
                ends.append(tensor["data_offsets"][1])
        if file.stat().st_size != 8 + length + max(ends):
            raise ValueError("length differs from the header")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, struct.error) as error:
        raise _broken(file) from error
    return counts


def _main_dtype(counts: Counter[str]) -> str | None:
    return _DTYPE_NAMES.get(counts.most_common(1)[0][0]) if counts else None


def _json_object(file: Path, key: str) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))[key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _broken(file) from error
    if not isinstance(found, dict):
        raise _broken(file)
    return found


def _broken(file: Path) -> CannotLoad:
    return CannotLoad(
        f"The file {file.name} is broken or cut short; nothing was changed: fetch it again, or choose "
        "another model."
    )
