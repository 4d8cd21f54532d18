#!/bin/sh
# Sees to a Chromium and the fonts that the browser tests need: browser.sh BIN, the environment's bin folder.
set -eu
bin=$1
packages="chromium fonts-noto-cjk fonts-noto-color-emoji"

say() { printf '\n%s\n' "== $*"; }

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] && grep -q '^ID=debian' /etc/os-release; then
    missing=""
    for package in $packages; do
        dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
    done
    [ -n "$missing" ] || exit 0
    say "Installing$missing with apt-get (about 180 MB)"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
    exit
fi

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null 2>&1; then exit 0; fi
done
with_deps=""
if [ "$(id -u)" = 0 ]; then with_deps="--with-deps"; fi
say "Fetching Playwright's Chromium unless it is there already"
"$bin/playwright" install $with_deps chromium || {
    echo "Error: no browser could be fetched; install Chromium with your system's package manager and run make test again." >&2
    exit 1
}
