#!/bin/sh
# After `make test` has failed: what failed in a browser runs once more, alone, and its second result counts.
# A browser beside another one's model can miss a deadline; a fault of ours fails twice. Anything else that
# failed stays failed. Usage: again.sh BIN
set -eu
failed=$(
  "$1/python" - <<'EOF'
import json, pathlib, sys
names = list(json.loads(pathlib.Path(".pytest_cache/v/cache/lastfailed").read_text()))
print("\n".join(names))
sys.exit(0 if names and all(name.startswith(("tests/browser/", "tests/spaces/test_served")) for name in names) else 1)
EOF
) || { echo "These tests failed, and not in a browser alone:"; echo "$failed"; exit 1; }
echo "Failed in a browser and tried again alone:"
echo "$failed"
exec "$1/python" -m pytest -n 0 --last-failed --last-failed-no-failures none tests/browser tests/spaces
