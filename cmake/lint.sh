#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-format over all sources and clang-tidy over those changed since the last commit, or both over the given
# files. Then runs plain_english.py over the rewritten files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
sources() { "$@" -- '*.h' '*.cc' '*.cu'; }
if [ $# -gt 0 ]; then
  formatted=("$@")
  checked=("$@")
else
  mapfile -t formatted < <(sources git ls-files --cached --others --exclude-standard)
  mapfile -t checked < <(sources git diff --name-only --diff-filter=d HEAD)
fi
clang-format --dry-run -Werror "${formatted[@]}"
cmake/plain_english.py
tidy=$(command -v clang-tidy-16 || command -v clang-tidy) || { echo "clang-tidy is not installed: formatting checked only" >&2; exit 0; }
cmake --preset plain >/dev/null  # each file has its own command there
for file in "${checked[@]}"; do
  if [[ $file == *.cc ]]; then "$tidy" -p build/plain --quiet --extra-arg=-Wno-unknown-warning-option "$file"; fi
done
