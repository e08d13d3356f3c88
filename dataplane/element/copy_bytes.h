// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace penstock {

// As memcpy, at its usual speed wherever the two lie. Where `to` lies some bytes
// ahead of `from`, whole pages not counted, wide loads wait for stores to other pages
// that look like the same place (glibc's bug 30994): memcpy then makes 3 GB/s on AMD's
// Zen 4, not 20. Windows out of a mapped file, one behind the other in a batch, lie so.
// From 4 MiB on the copy goes past the caches, where the processor can (x86): who reads it is
// another core, a GPU or a NIC (docs/decisions/0010-copies-past-the-caches.md).
void CopyBytes(void* to, const void* from, size_t bytes);

}  // namespace penstock
