"""Lays out the exact folder of a Hugging Face Space, and uploads it where that is asked for.

    python spaces/assemble.py [--hardware cpu|gpu|zero] [--upload OWNER/NAME] FOLDER
    python spaces/assemble.py --refresh

A Space is a repository of its own with app.py at its root, so it gets copies, never this folder
`spaces/` itself, whose name would shadow the platform's package of that name. What its front matter may
hold: the Hub's "Spaces Configuration Reference"; the names of hardware: `huggingface_hub.SpaceHardware`.
Without `--upload` it asks no network. `requirements.txt` beside this file is what a CPU gets, for whoever
copies by hand; `--refresh` makes it anew.
"""

import argparse
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any, Protocol

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
COPIED = ("app.py", "LICENSE", "playground", "assets")
LEFT_OUT = {
    "playground": shutil.ignore_patterns("__pycache__", "*.pyc", ".*"),
    "assets": shutil.ignore_patterns("__pycache__", "*.py", "screenshots", ".*"),  # what records the traces
}
HARDWARE = {"cpu": "cpu-basic", "gpu": "t4-small", "zero": "zero-a10g"}
"""What is suggested to whoever duplicates the Space: the smallest of its kind."""

FREE = ("cpu", "zero")
"""Asked for when a Space is created; one that costs money is chosen by its owner, on the Hub."""

BROUGHT = {"cpu": {"gradio"}, "gpu": {"gradio"}, "zero": {"gradio", "torch"}}
"""What the platform installs itself: the SDK of the front matter, and on ZeroGPU the torch that it patches."""

_SPACE_NAME = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)


class Refused(ValueError):
    """What cannot be done; the message is one sentence."""


class Hub(Protocol):
    """The two calls of `huggingface_hub.HfApi` that an upload takes."""

    def create_repo(self, repo_id: str, **options: Any) -> Any:
        """Create the Space, unless it is there."""
        ...

    def upload_folder(self, **options: Any) -> Any:
        """One commit with the folder's files."""
        ...


def assemble(folder: Path, hardware: str = "cpu", root: Path = ROOT) -> Path:
    """Write the Space for `hardware` into `folder`, which must be new or empty; returns it. Raises `Refused`."""
    if folder.exists() and any(folder.iterdir()):
        raise Refused(f"{folder} is not empty; nothing was written: give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_OUT[name])
        else:
            shutil.copy2(source, folder / name)
    (folder / "README.md").write_text(card(hardware, root), encoding="utf-8")
    (folder / "requirements.txt").write_text(requirements(hardware, root), encoding="utf-8")
    return folder


def card(hardware: str, root: Path = ROOT) -> str:
    """README.md with the front matter for `hardware`, and the version of gradio that is tested."""
    text = (root / "spaces" / "README.md").read_text(encoding="utf-8")
    values = {"sdk_version": pins(root)["gradio"], "suggested_hardware": HARDWARE[hardware]}
    for key, value in values.items():
        text, count = re.subn(rf"(?m)^{key}: .*$", f"{key}: {value}", text, count=1)
        if not count:
            raise Refused(f"spaces/README.md has no line “{key}:”; add one to its front matter.")
    return text


def requirements(hardware: str, root: Path = ROOT) -> str:
    """What pyproject.toml needs, in the versions that are tested, less what the platform brings."""
    versions = pins(root)
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = sorted({_name(line) for line in project["dependencies"]} - BROUGHT[hardware])
    lines = [f"{name}=={versions[name]}" for name in names]
    head = "# Made by spaces/assemble.py; gradio comes with `sdk_version` in README.md"
    return "\n".join([head + (", torch with ZeroGPU." if hardware == "zero" else "."), *lines, ""])


def pins(root: Path = ROOT) -> dict[str, str]:
    """The tested version of each package by its normalised name."""
    text = (root / "constraints.txt").read_text(encoding="utf-8")
    found = (line.partition("==") for line in text.splitlines() if "==" in line and not line.startswith("#"))
    return {_name(name): version.strip() for name, _, version in found}


def upload(folder: Path, space: str, hardware: str, hub: Hub) -> str:
    """Put an assembled folder into the Space `space` (`OWNER/NAME`), created where it lacks; its address.

    What an earlier version has left in our two folders is removed there, everything else stays.
    """
    require_name(space)
    if not (folder / "app.py").is_file() or (folder / "spaces").exists():
        raise Refused(
            f"{folder} is no assembled Space; nothing was uploaded: let this script write the folder."
        )
    free = {"space_hardware": HARDWARE[hardware]} if hardware in FREE else {}
    hub.create_repo(space, repo_type="space", space_sdk="gradio", exist_ok=True, **free)
    hub.upload_folder(
        repo_id=space, repo_type="space", folder_path=folder, commit_message="First Token, assembled",
        delete_patterns=["playground/*", "assets/*"],
    )  # fmt: skip
    return f"https://huggingface.co/spaces/{space}"


def require_name(space: str) -> None:
    """Refuse what cannot be a Space's name."""
    if not _SPACE_NAME.fullmatch(space):
        raise Refused(f"--upload takes OWNER/NAME, not {space[:60]!r}; nothing was written or uploaded.")


def main(arguments: list[str] | None = None, hub: Hub | None = None) -> int:
    """Read the command line and assemble; `hub` stands in for the Hub in tests."""
    parser = argparse.ArgumentParser(description="Lay out the folder of a Hugging Face Space.")
    parser.add_argument("folder", type=Path, nargs="?", help="a new or empty folder")
    parser.add_argument("--hardware", choices=sorted(HARDWARE), default="cpu", help="what it will run on")
    parser.add_argument(
        "--upload", metavar="OWNER/NAME", help="upload it too, with the token of HF_TOKEN or `hf auth login`"
    )
    parser.add_argument("--refresh", action="store_true", help="only write spaces/requirements.txt anew")
    given = parser.parse_args(arguments)
    if given.folder is None and not given.refresh:
        parser.error("a FOLDER is needed")
    try:
        if given.refresh:
            (HERE / "requirements.txt").write_text(requirements("cpu"), encoding="utf-8")
        if given.folder is not None:
            _assemble_and_upload(given.folder, given.hardware, given.upload, hub)
    except (OSError, Refused) as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    return 0


def _assemble_and_upload(folder: Path, hardware: str, space: str | None, hub: Hub | None) -> None:
    if space is None:
        print(f"The Space is in {assemble(folder, hardware)}. Push its contents to a Space's repository.")
        return
    require_name(space)
    token = _token()
    print(f"The Space is in {assemble(folder, hardware)}.")
    print(f"It is at {_uploaded(folder, space, hardware, token, hub)}.")
    if hardware not in FREE:
        print(f"Choose {HARDWARE[hardware]} or larger in its settings: a GPU of its own costs money.")


def _token() -> str:
    from huggingface_hub import get_token

    token = get_token()
    if token is None:
        raise Refused(
            "There is no token, so nothing was written or uploaded: set HF_TOKEN, or log in with `hf auth login`."
        )
    return token


def _uploaded(folder: Path, space: str, hardware: str, token: str, hub: Hub | None) -> str:
    """The address; whatever the Hub answers becomes one sentence without the token."""
    from huggingface_hub import HfApi

    api: Any = hub or HfApi(token=token)
    try:
        return upload(folder, space, hardware, api)
    except Refused:
        raise
    except Exception as error:  # the Hub's client has changed its HTTP library, and so its errors
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].replace(token, "…")
        raise Refused(
            f"The Hub did not take it ({reason[:300]}); {folder} is complete: push its contents yourself, or "
            "run this again with a new folder."
        ) from None


def _name(line: str) -> str:
    """The package that a requirement names, as indexes write it."""
    found = re.match(r"[A-Za-z0-9][\w.-]*", line.strip())
    return re.sub(r"[-_.]+", "-", found[0]).lower() if found else ""


if __name__ == "__main__":
    sys.exit(main())
