"""Lays out the exact folder of a Hugging Face Space: python spaces/assemble.py FOLDER.

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
LEFT_OUT = {
    "playground": shutil.ignore_patterns("__pycache__", "*.pyc", ".*"),
    "assets": shutil.ignore_patterns("__pycache__", "*.py", "screenshots", ".*"),  # what records the traces
}


def assemble(folder: Path, root: Path = ROOT) -> Path:
    """Write the Space into `folder`, which must be new or empty; returns it. Raises `FileExistsError`."""
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty; nothing was written: give a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=LEFT_OUT[name])
        else:
            shutil.copy2(source, folder / name)
    for name in ("README.md", "requirements.txt"):
        shutil.copy2(root / "spaces" / name, folder / name)
    return folder


def main() -> int:
    """Read the command line and assemble."""
    parser = argparse.ArgumentParser(description="Lay out the folder of a Hugging Face Space.")
    parser.add_argument("folder", type=Path, help="a new or empty folder")
    arguments = parser.parse_args()
    try:
        folder = assemble(arguments.folder)
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(f"The Space is in {folder}: push its contents to a Space's repository.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
