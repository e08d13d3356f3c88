// SPDX-License-Identifier: Apache-2.0
// The one function that copies elements between slots in this process, so that tests can check that
// a path copies nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)
namespace penstock {

// The same as memcpy(), but also counts the bytes.
void CopyCounted(void* to, const void* from, size_t bytes);
// Returns the number of bytes that CopyCounted() has copied since the process began.
int64_t BytesCopied();

}  // namespace penstock
#pragma GCC visibility pop
