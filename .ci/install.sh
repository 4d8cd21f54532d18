#!/bin/sh
# Installs this checkout into a virtual environment: install.sh PYTHON VENV WHAT, where WHAT is "." or ".[dev]".
#
# Where torch comes from is the one hard part, since the wheel that a plain `pip install torch` takes on
# Linux carries CUDA, about 3 GB. In order: a wheel that lies on this machine (pip's find-links), through
# pip; else uv, which looks for an NVIDIA driver and takes the CPU wheel where there is none.
set -eu
python=$1 venv=$2 what=$3
constraints=constraints.txt

say() { printf '\n%s\n' "== $*"; }
fail() { printf '%s\n' "Error: $*" >&2; exit 1; }

new_enough() { command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

if [ ! -x "$venv/bin/python" ]; then
    for candidate in "$python" python3.13 python3.12 python3.11 python3.14; do
        if new_enough "$candidate"; then found=$candidate; break; fi
    done
    [ -n "${found:-}" ] || fail "First Token needs Python 3.11 or newer, and none was found; install one, or name it: make run PYTHON=/path/to/python3."
    say "Making $venv with $("$found" --version)"
    "$found" -m venv "$venv" || fail "The virtual environment could not be made; on Debian and Ubuntu it needs: apt-get install python3-venv."
fi

torch=$(grep '^torch==' "$constraints")
if "$venv/bin/python" -m pip install --dry-run --quiet --no-index --no-deps "$torch" >/dev/null 2>&1; then
    say "Installing with pip; $torch lies on this machine"
    "$venv/bin/python" -m pip install --disable-pip-version-check -c "$constraints" -e "$what"
    exit
fi

uv=$(command -v uv || echo "$venv/bin/uv")
if [ ! -x "$uv" ]; then
    say "Fetching uv, which chooses the build of torch that suits this machine"
    "$venv/bin/python" -m pip install --disable-pip-version-check --quiet uv
fi
say "Installing with uv: about 300 MB to fetch on Linux without an NVIDIA GPU, about 3 GB with one"
"$uv" pip install --python "$venv/bin/python" --torch-backend=auto -c "$constraints" -e "$what"
