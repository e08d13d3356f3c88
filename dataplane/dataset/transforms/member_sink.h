// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/dataset/expr/function.h"

namespace penstock {

// The sink for one member of a larger element. Leaf i is leaf first + i of `sink`, which must
// outlive this object.
class MemberSink final : public ResultSink {
 public:
  MemberSink(ResultSink& sink, size_t first) : sink_(sink), first_(first) {}

  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override {
    return sink_.Place(first_ + i, dtype, dims);
  }
  absl::Status Copy(size_t i, const Tensor& value) override {
    return sink_.Copy(first_ + i, value);
  }

 private:
  ResultSink& sink_;
  const size_t first_;
};

}  // namespace penstock
