// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace penstock {

// Same as memcpy, but at full speed for any two addresses. If `to` is a few bytes ahead of `from`,
// modulo the page size, wide loads wait for stores to other pages that look like the same address
// (glibc bug 30994): memcpy then reaches 3 GB/s on AMD's Zen 4 instead of 20. This occurs when
// consecutive windows of a mapped file are copied into a batch. From 4 MiB on the copy bypasses the
// caches, if the processor can (x86), because its reader is another core, a GPU or a NIC
// (docs/decisions/0010-copies-past-the-caches.md).
void CopyBytes(void* to, const void* from, size_t bytes);

}  // namespace penstock
