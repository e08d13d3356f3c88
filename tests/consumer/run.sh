#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build into a new folder and builds and runs a project outside the
# tree against it, by CMake (static and shared) and by pkg-config; then the
# installed command, its demo and its soak; then a transport outside the tree, which has to
# pass the installed suite and to carry the demo.
#   run.sh BUILD_FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Not optimised, but for the example that trains: what is built here is not what is tested.
export CMAKE_GENERATOR=Ninja CMAKE_BUILD_TYPE=None CMAKE_PREFIX_PATH=$folder/prefix CCACHE_BASEDIR=$folder
! command -v ccache >/dev/null || export CMAKE_CXX_COMPILER_LAUNCHER=ccache
cmake --install "$1" --prefix "$folder/prefix" --strip >/dev/null
cp -r "$here" "$folder/consumer"
cmake -S "$folder/consumer" -B "$folder/build" >/dev/null
cmake --build "$folder/build"
"$folder/build/with_static"
libraries=$(dirname "$(find "$folder/prefix" -name 'libpenstock.so' | head -n 1)")
LD_LIBRARY_PATH=$libraries "$folder/build/with_shared"
export PKG_CONFIG_PATH=$libraries/pkgconfig
# shellcheck disable=SC2046  # flags are words
c++ -std=c++20 "$here/main.cc" $(pkg-config --cflags --libs penstock) -o "$folder/with_pkg_config"
LD_LIBRARY_PATH=$libraries "$folder/with_pkg_config"
"$folder/prefix/bin/penstock" version
cmake -S "$here/../../examples/replicas" -B "$folder/replicas" -DCMAKE_BUILD_TYPE=Release >/dev/null
cmake --build "$folder/replicas"
python3 "$here/../../examples/replicas/check.py" "$folder/replicas/replicas_trainer" \
  "$folder/prefix/bin/digits_make_shards" "$here/../../examples/digits/digits.csv"
"$folder/prefix/bin/penstock" demo --kill none --epochs 2 --step-ms 0 --accuracy 0.5
"$folder/prefix/bin/penstock" soak --laps 1 --faults kill-worker

for header in $(cd "$folder/prefix/include/penstock/transport" && find . -name '*.h' | sort); do
  echo "#include \"${header#./}\""
done >"$folder/headers.cc"
# shellcheck disable=SC2046  # flags are words
c++ -std=c++20 -Wall -Wextra -Werror -Wno-missing-field-initializers -fsyntax-only "$folder/headers.cc" \
  $(pkg-config --cflags penstock)
cmake -S "$here/../../examples/relay" -B "$folder/relay" >/dev/null
cmake --build "$folder/relay"
"$folder/relay/conformance_test" --gtest_brief=1
demo=$(PENSTOCK_TRANSPORTS=$folder/relay/librelay.so "$folder/prefix/bin/penstock" demo --kill none --epochs 1 \
  --step-ms 0 --accuracy 0.2 --protocol relay --worker-protocol relay)
grep "links over relay: DistributeOptions" <<<"$demo"
grep "demo: ok" <<<"$demo"
