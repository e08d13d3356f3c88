// SPDX-License-Identifier: Apache-2.0
// The one way in which this process copies elements between slots, so that a
// path that claims to copy nothing can be held to it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

// As memcpy, and counts.
void CopyCounted(void* to, const void* from, size_t bytes);
// Bytes that went through CopyCounted() since the process began.
int64_t BytesCopied();

}  // namespace penstock
