// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace penstock {

// Same as memcpy, but at full speed for any two addresses. If `to` is a few bytes ahead of `from`,
// modulo the page size, memcpy reaches only 3 GB/s on AMD's Zen 4, instead of 20: wide loads wait
// for earlier stores to other pages whose addresses have equal low bits (glibc bug 30994). This
// occurs when consecutive windows of a mapped file are copied into a batch. On x86, copies of 4 MiB
// or more bypass the caches, because another core, a GPU or a NIC reads the data next
// (docs/decisions/0010-copies-past-the-caches.md).
void CopyBytes(void* to, const void* from, size_t bytes);

}  // namespace penstock
