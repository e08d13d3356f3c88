#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# clang-format check and clang-tidy over the given files, or those changed since the last commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git diff --name-only --diff-filter=d HEAD -- '*.h' '*.cc')
[ ${#files[@]} -gt 0 ] || { echo "nothing changed"; exit 0; }
clang-format --dry-run -Werror "${files[@]}"
tidy=$(command -v clang-tidy-16 || command -v clang-tidy) || { echo "clang-tidy is not installed: formatting checked only" >&2; exit 0; }
[ -f build/release/compile_commands.json ] || cmake --preset release >/dev/null
for file in "${files[@]}"; do
  [[ $file == *.cc ]] && "$tidy" -p build/release --quiet "$file"
done
