#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a new folder, builds examples/plugin outside the tree against
# it, once as it is and once against headers of another release, and lets plugin.py read
# through it.
#   run.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/prefix" --strip >/dev/null
cp -r "$folder/prefix" "$folder/other"
sed -i 's/kPluginInterface = [0-9]*/kPluginInterface = 4711/' "$folder/other/include/penstock/plugin.h"
for prefix in prefix other; do
  cmake -S "$here/../../examples/plugin" -B "$folder/build-$prefix" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$folder/$prefix" >/dev/null
  cmake --build "$folder/build-$prefix"
done
python3 "$here/plugin.py" --bin "$build/bin" --penstock "$folder/prefix/bin/penstock" \
  --plugin "$folder/build-prefix/libnumbers.so" --other "$folder/build-other/libnumbers.so"
