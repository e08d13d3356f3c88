// SPDX-License-Identifier: Apache-2.0
// Dense leaves in memory that is shared with a Python process:
//
//   u64 count; for each leaf: u64 dtype, rank, offset, bytes, dims[rank]
//
// Each leaf's values are at its offset, a multiple of 64, row-major. For strings, the u64 offsets
// (one more than the number of strings) come first, then the bytes. All numbers have this host's
// endianness.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/register.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock::python_host {

// Returns how many bytes the leaves take.
size_t BytesOfLeaves(absl::Span<const Tensor> leaves);
// Writes the leaves. REQUIRES: `to` has BytesOfLeaves() bytes and is aligned to 8.
void WriteLeaves(absl::Span<const Tensor> leaves, absl::Span<std::byte> to);

// Passes the leaves in `from` to `out`. `from` is untrusted. Returns Internal if its bytes are not
// valid leaves, or if a dtype differs from its spec's. `out` checks the dims; its errors are
// returned.
absl::Status ReadLeaves(absl::Span<const std::byte> from, absl::Span<const TensorSpec> specs,
                        ElementOutputs& out);

}  // namespace penstock::python_host
