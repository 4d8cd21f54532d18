"""Lays out the exact folder of a Hugging Face Space: python spaces/assemble.py FOLDER [--hardware zero].

A Space is a repository of its own with app.py at its root, so it gets copies, never this folder
`spaces/` itself, whose name would shadow the platform's package of that name. Pushes nothing and
asks no network.
"""

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
COPIED = ("app.py", "LICENSE", "playground", "assets")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "screenshots", "record.py", ".*")
HARDWARE = {
    "cpu": "a plain machine: torch is installed",
    "gpu": "a machine with a GPU of its own: torch is installed",
    "zero": "ZeroGPU: the platform brings torch",
}


def assemble(folder: Path, hardware: str = "cpu", root: Path = ROOT) -> Path:
    """Write the Space into `folder`, which must be new or empty; returns it. Raises `FileExistsError`."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; nothing was written: give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_OUT)
        else:
            shutil.copy2(source, folder / name)
    shutil.copy2(root / "spaces" / "README.md", folder / "README.md")
    (folder / "requirements.txt").write_text(requirements(hardware, root), encoding="utf-8")
    return folder


def requirements(hardware: str, root: Path = ROOT) -> str:
    """The text of the Space's requirements.txt, in the versions of constraints.txt."""
    text = (root / "spaces" / "requirements.txt").read_text(encoding="utf-8")
    return text if hardware == "zero" else f"{text}{_pinned('torch', root)}\n"


def _pinned(package: str, root: Path) -> str:
    lines = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{package}=="))


def main() -> int:
    """Read the command line and assemble."""
    parser = argparse.ArgumentParser(description="Lay out the folder of a Hugging Face Space.")
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    parser.add_argument("--hardware", choices=HARDWARE, default="cpu", help="; ".join(HARDWARE.values()))
    arguments = parser.parse_args()
    try:
        folder = assemble(arguments.folder, arguments.hardware)
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(f"The Space is in {folder}: push its contents to a Space's repository.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
