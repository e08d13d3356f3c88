// SPDX-License-Identifier: Apache-2.0
// The layout of dense leaves in memory that is shared with a Python process:
//
//   u64 count; for each leaf: u64 dtype, rank, offset, bytes, dims[rank]
//
// Each leaf's values are in row-major order at the leaf's offset, a multiple of 64. Strings are
// stored as u64 offsets (one more than the number of strings), followed by the strings' bytes. All
// numbers have this host's endianness.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/register.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock::python_host {

// Returns the number of bytes that the leaves take.
size_t BytesOfLeaves(absl::Span<const Tensor> leaves);
// Writes the leaves. REQUIRES: `to` has BytesOfLeaves() bytes and is 8-byte aligned.
void WriteLeaves(absl::Span<const Tensor> leaves, absl::Span<std::byte> to);

// Passes the leaves in `from` to `out`. `from` is untrusted. Returns Internal if `from` does not
// contain valid leaves, or if a leaf's dtype differs from its spec's. Also returns the errors of
// `out`, which checks the dims.
absl::Status ReadLeaves(absl::Span<const std::byte> from, absl::Span<const TensorSpec> specs,
                        ElementOutputs& out);

}  // namespace penstock::python_host
