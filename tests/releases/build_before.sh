#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build_before.sh FOLDER: builds the command and the soak's trainer of the release before, which before.txt
# names, in FOLDER/build/release/bin. The sources come from the history of this clone. A later call builds
# only what is missing.
set -euo pipefail
[ $# = 1 ] || { echo "usage: build_before.sh FOLDER" >&2; exit 2; }
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
name=$(cat "$root/tests/releases/before.txt")
if ! commit=$(git -C "$root" rev-parse --quiet --verify "$name^{commit}"); then
  echo "build_before.sh: this clone lacks $name, the release before (tests/releases/before.txt);" \
    "if the clone is shallow, fetch its history: git fetch --unshallow --tags" >&2
  exit 1
fi
mkdir -p "$1"
cd "$1"
if [ "$(cat .commit 2>/dev/null)" != "$commit" ]; then
  if [ -n "$(ls -A)" ] && [ ! -f .commit ]; then
    echo "build_before.sh: $PWD is not empty, and was not made by this script; name another folder" >&2
    exit 1
  fi
  # Ninja would not notice sources that are older than what it built from another commit.
  find . -mindepth 1 -delete
  echo "$commit" >.commit
fi
git -C "$root" archive "$commit" | tar -x  # with the time of the commit, so nothing is built again
./run build release penstock soak_trainer
