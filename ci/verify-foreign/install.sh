#!/bin/sh
# Installs other people's verifiers, pinned by version and digest, under
# .lazaret/verify-foreign/ in the repository and nowhere else. Needs python3 with venv
# and pip, and node with npm. A second call takes a moment.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
place="$root/.lazaret/verify-foreign"
stamp=$(cat "$here/requirements.txt" "$here/package-lock.json" | sha256sum | cut -d ' ' -f 1)
if [ -f "$place/installed" ] && [ "$(cat "$place/installed")" = "$stamp" ]; then
    exit 0
fi
rm -rf "$place"
mkdir -p "$place"
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes \
    --only-binary :all: --requirement "$here/requirements.txt"
cp "$here/package.json" "$here/package-lock.json" "$place/"
(cd "$place" && npm ci --silent --ignore-scripts --no-audit --no-fund)
# Written last: an interrupted installation is repeated.
printf '%s\n' "$stamp" > "$place/installed"
