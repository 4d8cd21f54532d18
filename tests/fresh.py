"""A fresh virtual environment that sees this one's packages but not this checkout, without a download."""

import subprocess
import sys
import sysconfig
from pathlib import Path


def fresh_environment(folder: Path) -> Path:
    """Make it; returns its Python. The path file is not followed further, so our own editable install stays out."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    python = folder / "bin" / "python"
    # venv's own setuptools would hide the newer one that torch asks for.
    subprocess.run(
        [str(python), "-m", "pip", "uninstall", "--quiet", "-y", "setuptools"], check=True, timeout=60
    )
    site = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    (Path(site) / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return python
