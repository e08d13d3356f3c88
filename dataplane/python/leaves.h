// SPDX-License-Identifier: Apache-2.0
// Dense leaves as they lie in memory that is shared with a Python process:
//
//   u64 count; of each leaf: u64 dtype, rank, offset, bytes, dims[rank]
//
// and at its offset, a multiple of 64, each leaf's values, row-major, or for strings their
// u64 offsets (one more than there are strings) and their bytes. All of this host's endianness.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/register.h"
#include "penstock/spec.h"
#include "penstock/tensor.h"

namespace penstock::python_host {

// How many bytes they take.
size_t BytesOfLeaves(absl::Span<const Tensor> leaves);
// REQUIRES: as many bytes, of memory that is aligned to 8.
void WriteLeaves(absl::Span<const Tensor> leaves, absl::Span<std::byte> to);

// Hands the leaves of `from` on. Nothing of it is trusted: Internal for what is no such leaves,
// or not of the specs' dtypes; else what `out` says of their dims.
absl::Status ReadLeaves(absl::Span<const std::byte> from, absl::Span<const TensorSpec> specs,
                        ElementOutputs& out);

}  // namespace penstock::python_host
