#!/bin/sh
# Lays an older transformers over the installed environment: oldest.sh BIN FOLDER.
#
# A folder that stands first on PYTHONPATH wins over the environment, which lends everything else; torch
# alone would be 200 MB to install again. What the mixture lacks or contradicts, `pip check` finds.
set -eu
bin=$1 folder=$2

rm -rf "$folder"
"$bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --target "$folder" -r constraints-oldest.txt
PYTHONPATH="$folder" "$bin/python" -m pip check --disable-pip-version-check
