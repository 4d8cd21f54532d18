"""Models of the Hugging Face Hub: found in its local cache, or fetched into it.

Only safetensors, tokenizer and config files are taken; code and pickles never. Knows no model
class.
"""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from playground.core.deadline import within
from playground.engine import weights
from playground.engine.progress import CannotLoad, Progress, Report, measured

ANSWER_SECONDS = 3.0
_WANTED = ["*.safetensors", "*.json", "*.txt", "*.model", "*.jinja", "*.tiktoken"]
_UNWANTED = ["*/*", "consolidated*"]
_TOKENIZERS = ["tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json"]
"""One of these is there once a download is through the small files."""


class Unreachable(CannotLoad):
    """The Hub did not answer in time, or the connection broke off."""


def cached(hub_id: str) -> Path | None:
    """The complete snapshot in the local Hub cache, or None; never asks the network."""
    from huggingface_hub import try_to_load_from_cache

    try:
        config = try_to_load_from_cache(hub_id, "config.json")
    except ValueError:  # no such id can exist
        return None
    if not isinstance(config, str):
        return None
    folder = Path(config).parent
    complete = any((folder / name).is_file() for name in _TOKENIZERS) and weights.in_folder(folder)
    return folder if complete else None


def fetch(hub_id: str, report: Report) -> Path:
    """Download what is missing of `hub_id` into the Hub cache and return the snapshot's folder.

    Raises `Unreachable` when the Hub does not answer within `ANSWER_SECONDS` or breaks off,
    `CannotLoad` for an id that does not exist, is gated, or has no safetensors.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError

    report(Progress("hub-check"))
    total_bytes = _ask(hub_id)
    blobs = repository_folder(hub_id) / "blobs"
    already_bytes = folder_bytes(blobs)
    try:
        with measured(report, "download", total_bytes, lambda: folder_bytes(blobs) - already_bytes):
            found = snapshot_download(
                hub_id, allow_patterns=_WANTED, ignore_patterns=_UNWANTED, tqdm_class=_quiet_bar()
            )
    except GatedRepoError as error:
        raise CannotLoad(
            f"{hub_id!r} is gated; nothing was changed: accept its terms on the Hub, log in with "
            "`hf auth login`, and try again."
        ) from error
    except Exception as error:  # the Hub's client has changed its HTTP library, and so its errors
        raise Unreachable(
            f"The download of {hub_id!r} broke off ({type(error).__name__}); what had arrived is kept and "
            "nothing else was changed: check the connection and the free disk space, and try again."
        ) from error
    return Path(found)


def repository_folder(hub_id: str) -> Path:
    """Where the Hub cache keeps everything of `hub_id`, whether or not it exists."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE) / f"models--{hub_id.replace('/', '--')}"


def folder_bytes(folder: Path) -> int:
    """Bytes of all files under `folder`; a file that vanishes meanwhile counts nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total


def _ask(hub_id: str) -> int:
    """Bytes that a fetch of `hub_id` takes, from one short question to the Hub."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        info = within(
            ANSWER_SECONDS,
            lambda: HfApi().model_info(hub_id, timeout=ANSWER_SECONDS, files_metadata=True),
        )
    except (RepositoryNotFoundError, HFValidationError) as error:
        raise CannotLoad(
            f"No model {hub_id!r} exists on the Hub, or it is private; nothing was changed: check the "
            "spelling, or log in with `hf auth login`."
        ) from error
    except Exception as error:  # see above
        raise Unreachable(
            f"The Hugging Face Hub cannot be reached ({type(error).__name__}) and {hub_id!r} is not on this "
            "machine; nothing was changed: check the connection, or give a local folder or GGUF file."
        ) from error
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or [] if _is_wanted(file.rfilename)}
    if not any(name.endswith(".safetensors") for name in sizes):
        raise CannotLoad(f"{hub_id!r} has no safetensors weights; nothing was changed: choose another model.")
    return sum(sizes.values())


def _is_wanted(name: str) -> bool:
    """What `snapshot_download` does with the same patterns."""
    return any(fnmatchcase(name, pattern) for pattern in _WANTED) and not any(
        fnmatchcase(name, pattern) for pattern in _UNWANTED
    )


def _quiet_bar() -> Any:
    """A progress bar that prints nothing; the bytes are reported by us."""
    from huggingface_hub.utils.tqdm import tqdm

    class QuietBar(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **{**options, "disable": True})

    return QuietBar
