#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes one archive of the build and all libraries that it needs except glibc, so that it runs on a machine without
# packages (glibc 2.36 or newer):
#
#   cmake/bundle.sh BUILD ARCHIVE [UCX]
#
# BUILD/bundle-parts.txt lists the content. UCX: folder `libucx` of an unpacked wheel, whose libraries replace the
# system's. PENSTOCK_BUNDLE_LEVEL: zstd's compression level.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$1 archive=$2 ucx=${3:-}
most=$((45 << 20))  # bytes
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
top=$out/penstock-bundle

for tool in patchelf strip zstd; do
  command -v "$tool" >/dev/null || { echo "bundle: $tool is missing; ./run deps bundle" >&2; exit 1; }
done

# The machine's own libraries: those of glibc and of the GPU's driver.
foreign='^(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil|libanl|libcuda|libnvidia-ml)[.-]'

# Copies the libraries that a program or library is linked with.
closure() {
  ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3} $3 == "not" {print $1, "missing"}' | while read -r name path; do
    [[ $name =~ $foreign ]] && continue
    [ "$path" != missing ] || { echo "bundle: $1 needs $name, which this machine lacks" >&2; exit 1; }
    [ -e "$top/lib/$name" ] || cp -L "$path" "$top/lib/$name"
  done
}

add_ucx_of_the_system() {
  local folder module
  folder=$(pkg-config --variable=libdir ucx)/ucx
  for module in cma ib rdmacm; do
    [ -e "$folder/libuct_$module.so.0" ] || continue
    cp -L "$folder/libuct_$module.so.0" "$top/lib/ucx/"
    ln -s "libuct_$module.so.0" "$top/lib/ucx/libuct_$module.so"
    closure "$folder/libuct_$module.so.0"
  done
}

# This UCX has CUDA and no verbs. Our module is compiled against older headers and works with it unchanged.
add_ucx_of_the_wheel() {
  local library module
  for library in ucm ucs uct ucp; do cp -L "$ucx/lib/lib$library.so.0" "$top/lib/"; done
  for module in uct_cma uct_cuda ucm_cuda; do
    cp -L "$ucx/lib/ucx/lib$module.so.0" "$top/lib/ucx/"
    ln -s "lib$module.so.0" "$top/lib/ucx/lib$module.so"
  done
  cp "$ucx"/../libucx_cu13.libs/libcudart-*.so* "$top/lib/"
}

mkdir -p "$top/lib" "$top/share/penstock/examples"
while read -r folder part; do
  mkdir -p "$top/$folder"
  cp "$part" "$top/$folder/"
  closure "$part"
done <"$build/bundle-parts.txt"
if [ -e "$top/lib/penstock/libpenstock_ucx.so" ]; then
  mkdir -p "$top/lib/ucx"
  if [ -n "$ucx" ]; then add_ucx_of_the_wheel; else add_ucx_of_the_system; fi
fi
mkdir -p "$top/share/penstock/examples/digits"
cp "$root"/examples/digits/{*.py,digits.csv,README.md} "$top/share/penstock/examples/digits/"
mkdir -p "$top"/share/penstock/{bench,bench_cluster}
cp "$root/bench/cluster/launch.py" "$top/share/penstock/bench_cluster/"
cp "$root"/bench/page/{page.py,template.html,README.md} "$top/share/penstock/bench/"
cp "$root/cmake/bundle.README" "$top/README"
if [ -e "$top/tests/cuda_gpu_test" ]; then cp "$root/cmake/gpu-day.sh" "$top/gpu-day"; fi

chmod -R u+w "$top"
relocate() {  # FILE, and FOLDER-OF-LIBRARIES relative to the file's folder
  strip --strip-unneeded "$1"
  patchelf --set-rpath "\$ORIGIN/$2" "$1"
}
for file in "$top"/bin/* "$top"/tests/*; do relocate "$file" ../lib; done
for file in "$top"/lib/*.so*; do relocate "$file" .; done
for file in "$top"/lib/ucx/*.so.* "$top"/lib/penstock/*.so; do
  [ ! -e "$file" ] || relocate "$file" ..
done

mkdir -p "$(dirname "$archive")"
tar -C "$out" -cf - penstock-bundle | zstd -q -f -T0 "-${PENSTOCK_BUNDLE_LEVEL:-19}" -o "$archive"
bytes=$(stat -c %s "$archive")
unpacked=$(du -sb "$top" | cut -f1)
awk -v a="$bytes" -v u="$unpacked" -v n="$archive" \
  'BEGIN {printf "%s: %.1f MiB, unpacked %.1f MiB\n", n, a / 1048576, u / 1048576}'
[ "$bytes" -le "$most" ] || { echo "bundle: the archive is larger than the limit of $((most >> 20)) MiB" >&2; exit 1; }
