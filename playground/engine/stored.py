"""The models on this machine that a name leads to: where each lies, how large, and removing one.

Two places: the Hugging Face Hub's cache, which other programs use too, and our own converted
copies. Knows no way of fetching and no torch.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from playground import catalog
from playground.engine import wheel
from playground.engine.hub import folder_bytes
from playground.engine.progress import CannotLoad


@dataclass(frozen=True, slots=True)
class StoredModel:
    """`source` is hub, converted, or missing for a named model that was not fetched yet."""

    name: str
    source: Literal["hub", "converted", "missing"]
    path: Path | None
    bytes: int | None
    default: bool = False


def stored() -> list[StoredModel]:
    """Every named model, fetched or not, and whatever else lies in the Hub's cache; default first."""
    default = catalog.default_model()
    found = [_from_hub(repository) for repository in _hub_models()]
    made = wheel.converted()
    if made is not None:
        found.append(StoredModel(default.title, "converted", made, folder_bytes(made), default=True))
    here = {model.name for model in found}
    found += [
        StoredModel(known.hub, "missing", None, None, known.default)
        for known in catalog.models()
        if not here & {known.hub, known.title}
    ]
    return sorted(found, key=lambda model: (not model.default, model.path is None, model.name.lower()))


def remove(name: str) -> list[StoredModel]:
    """Delete every copy of `name` and return what was deleted; raises `CannotLoad` if there is none."""
    known = catalog.model(name)
    names = {known.hub, known.title} if known else {name}
    gone = [model for model in stored() if model.path is not None and model.name in names]
    if not gone:
        raise CannotLoad(f"{name!r} is not on this machine; nothing was removed: see models list.")
    for model in gone:
        _delete(model)
    return gone


def _delete(model: StoredModel) -> None:
    if model.source == "converted":
        wheel.remove()
    elif model.path is not None:
        wheel.discard(model.path)


def _hub_models() -> list[Any]:
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        return [repository for repository in scan_cache_dir().repos if repository.repo_type == "model"]
    except CacheNotFound:
        return []


def _from_hub(repository: Any) -> StoredModel:
    known = catalog.model(repository.repo_id)
    default = known is not None and known.default
    return StoredModel(
        repository.repo_id, "hub", Path(repository.repo_path), repository.size_on_disk, default
    )
