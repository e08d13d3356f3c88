// SPDX-License-Identifier: Apache-2.0
// Views of parts of dense tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "penstock/tensor.h"

namespace penstock {

inline int64_t Product(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims) product *= dim;
  return product;
}

// Returns the values of `tensor` from value number `first` on, as a tensor of `dims`. `dims` and
// the tensor's memory must outlive the view. REQUIRES: `tensor` has enough values from there on.
inline Tensor ValuesOf(const Tensor& tensor, int64_t first, absl::Span<const int64_t> dims) {
  if (tensor.dtype() != kString) {
    const auto* values = static_cast<const std::byte*>(tensor.raw());
    return Tensor(tensor.dtype(), dims, values + first * SizeOf(tensor.dtype()));
  }
  const auto* offsets = static_cast<const uint64_t*>(tensor.raw());
  const char* bytes = tensor.element_count() == 0 ? nullptr : tensor.string(0).data() - offsets[0];
  return Tensor(kString, dims, offsets + first, bytes);
}

// Returns row `n` along the first dimension. REQUIRES: dense, n < dim(0).
inline Tensor RowOf(const Tensor& tensor, int64_t n) {
  const absl::Span<const int64_t> dims = tensor.dims().subspan(1);
  return ValuesOf(tensor, n * Product(dims), dims);
}

}  // namespace penstock
