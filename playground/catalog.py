"""Models that have a short name, shapes of known models, and accelerators, for the arithmetic.

The names stand in `assets/models.toml`; shapes and accelerators in `assets/shapes`, each with the place
where its figures were read. Knows no torch and loads no model.
"""

import json
import os
import re
import tomllib
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from playground import settings
from playground.core.deadline import within
from playground.core.refusal import Refused

ANSWER_SECONDS = 3.0
"""How long the Hub may take to answer."""

CONFIG_LIMIT_BYTES = 10 * 2**20
NAME_CHARACTERS_LIMIT = 1000
HUB_ID = re.compile(r"(?=.{1,96}\Z)[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
"""`owner/name`, or the name alone for the oldest models."""


class UnknownConfig(Refused, ValueError):
    """A config that cannot be found or read; the message is one sentence."""


class UnknownAccelerator(Refused, ValueError):
    """An accelerator that is not in the table; the message is one sentence."""

    wrong_use = True


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model with a short name. `hub` is its id on the Hugging Face Hub."""

    name: str
    hub: str
    about: str = ""
    default: bool = False
    multilingual: bool = False

    @property
    def title(self) -> str:
        """The id without its owner, as people call the model."""
        return self.hub.rpartition("/")[2]


@cache
def models() -> tuple[KnownModel, ...]:
    """The named models, the default first."""
    known = [KnownModel(**entry) for entry in _file("models.toml")["model"]]
    return tuple(sorted(known, key=lambda model: not model.default))


def default_model() -> KnownModel:
    """The model that runs when nothing is asked for."""
    return models()[0]


def model(name: str) -> KnownModel | None:
    """The model of that short name, Hub id or title, in any case of letters; None if unknown."""
    wanted = name.strip().lower()
    return next((m for m in models() if wanted in (m.name.lower(), m.hub.lower(), m.title.lower())), None)


@dataclass(frozen=True, slots=True)
class KnownConfig:
    """The part of a public `config.json` that the arithmetic needs.

    `hub` is its id on the Hub, `source` where the figures were read, `read` what stands there.
    `parameters` is a published count, None where none was read; `parameters_source` is of that.
    """

    name: str
    hub: str
    title: str
    source: str
    read: str
    shape: dict[str, Any]
    parameters: int | None = None
    parameters_source: str = ""


@cache
def configs() -> tuple[KnownConfig, ...]:
    """The known shapes, by family and size."""
    return tuple(KnownConfig(**entry) for entry in _file("shapes/configs.toml")["config"])


def config(name: str) -> KnownConfig | None:
    """The shape of that short name or Hub id, in any case of letters; None if unknown."""
    wanted = name.strip().lower()
    return next((c for c in configs() if wanted in (c.name, c.hub.lower())), None)


@dataclass(frozen=True, slots=True)
class Accelerator:
    """A device's memory and speed as its maker prints them; `source` is where they were read.

    A GB is counted as 10^9 bytes. `matrix_flops` is the dense 16-bit rate a second, None where it was not
    read. `reported_bytes` is the memory that a driver counted on such a device, None where that was not read.
    """

    name: str
    title: str
    memory_bytes: int
    bytes_per_second: int
    matrix_flops: int | None
    source: str
    reported_bytes: int | None = None
    note: str = ""


@cache
def accelerators() -> tuple[Accelerator, ...]:
    """The known accelerators, in the file's order."""
    return tuple(_accelerator(entry) for entry in _file("shapes/accelerators.toml")["accelerator"])


def accelerator(name: str) -> Accelerator:
    """The accelerator of that short name or title, in any case of letters; raises `UnknownAccelerator`."""
    wanted = name.strip().lower()
    found = next((a for a in accelerators() if wanted in (a.name, a.title.lower())), None)
    if found is None:
        names = ", ".join(known.name for known in accelerators())
        raise UnknownAccelerator(f"No accelerator {name[:60]!r} is known; known are {names}.")
    return found


def kv_config(name: str) -> dict[str, Any]:
    """The config of a file, a folder, a name of the catalog, or a Hub id.

    A Hub id that the catalog does not know is looked up in the local Hub cache, then on the Hub
    where the environment allows it. Raises `UnknownConfig`.
    """
    name = name.strip()
    if not name or len(name) > NAME_CHARACTERS_LIMIT or not name.isprintable():
        raise UnknownConfig("Give a config.json, its folder, a name of the catalog, or a Hub id.")
    path = Path(os.path.expanduser(name))  # unlike Path's own, it leaves a user that is unknown as it is
    for file in (path, path / "config.json"):
        if os.path.isfile(file):
            return _read(file)
    if os.path.isdir(path):
        raise UnknownConfig(f"The folder {name!r} has no config.json; give one that has, or a catalog name.")
    known = config(name)
    if known is not None:
        return deepcopy(known.shape)
    named = model(name)
    return _read(_from_hub(named.hub if named else name))


def hub_config(hub_id: str) -> dict[str, Any]:
    """The config of a Hub id, from the local Hub cache or fetched; opens no other file.

    Raises `UnknownConfig`.
    """
    hub_id = hub_id.strip()
    if HUB_ID.fullmatch(hub_id) is None:
        raise UnknownConfig("That is no Hub id; give one like owner/name.")
    return _read(_from_hub(hub_id))


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > CONFIG_LIMIT_BYTES:
            raise ValueError("too long")
        read = json.loads(file.read_text(encoding="utf-8-sig"))  # some editors begin with a mark
    except (OSError, ValueError, RecursionError) as error:
        raise UnknownConfig(f"{file.name!r} cannot be read as JSON; give a model's config.json.") from error
    if not isinstance(read, dict):
        raise UnknownConfig(f"{file.name!r} holds no config; give a model's config.json.")
    return read


def _from_hub(hub_id: str) -> Path:
    """The `config.json` of a Hub id, from the local cache or fetched."""
    from huggingface_hub import HfApi, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    if HUB_ID.fullmatch(hub_id) is None:
        raise UnknownConfig(f"There is no file, folder or name {hub_id!r}; known by name are {_names()}.")
    here = try_to_load_from_cache(hub_id, "config.json")
    if isinstance(here, str):
        return Path(here)
    if settings.from_environment().offline:
        raise UnknownConfig(
            f"The config of {hub_id!r} is not on this machine and the network is switched off; give a "
            f"config.json, or one of {_names()}."
        )
    try:
        # One short question first: a download would try for half a minute to reach a Hub that is not there.
        within(ANSWER_SECONDS, lambda: HfApi().model_info(hub_id, timeout=ANSWER_SECONDS))
        return Path(hf_hub_download(hub_id, "config.json"))
    except GatedRepoError as error:
        raise UnknownConfig(
            f"{hub_id!r} is gated; accept its terms on the Hub and log in with `hf auth login`, or give a "
            "config.json."
        ) from error
    except RepositoryNotFoundError as error:
        raise UnknownConfig(
            f"No model {hub_id!r} exists on the Hub, or it is private; known by name are {_names()}."
        ) from error
    except Exception as error:  # the Hub's client has changed its HTTP library, and so its errors
        raise UnknownConfig(
            f"The config of {hub_id!r} is not on this machine and the Hub cannot be reached; give a "
            f"config.json, or one of {_names()}."
        ) from error


def _names() -> str:
    return ", ".join(known.name for known in configs())


def _accelerator(entry: dict[str, Any]) -> Accelerator:
    tflops = entry.get("matrix_tflops")
    return Accelerator(
        name=entry["name"],
        title=entry["title"],
        memory_bytes=entry["memory_gb"] * 10**9,
        bytes_per_second=entry["bandwidth_gb_per_second"] * 10**9,
        matrix_flops=None if tflops is None else round(tflops * 10**12),
        source=entry["source"],
        reported_bytes=entry.get("reported_bytes"),
        note=entry.get("note", ""),
    )


@cache
def _file(name: str) -> dict[str, Any]:
    return tomllib.loads((settings.assets_dir() / name).read_text(encoding="utf-8"))
