// SPDX-License-Identifier: Apache-2.0
// Collects the results of a function as a new element.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Writes results directly into the element's block if the block's layout is known when they arrive:
// if all leaves are static, or if there is only one leaf. Otherwise the sink keeps the results,
// outside the pool's blocks, until all sizes are known. Used on one thread.
class ElementSink final : public ResultSink {
 public:
  // `place`: from Pool::PlaceOf().
  ElementSink(Pool& pool, const Spec& spec, int64_t place = kNoPlace)
      : pool_(pool), place_(place), spec_(spec) {}

  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override;
  absl::Status Copy(size_t i, const Tensor& value) override;

  // Returns the element. Internal if a leaf is missing.
  absl::StatusOr<Element> Finish() &&;

 private:
  struct Kept {
    std::vector<int64_t> dims;
    Loan values;    // if the results are placed
    Element copy;   // if the results are copied
    Tensor tensor;  // a view of `values` or `copy`
  };

  // Returns the block that results are written into, made at the first result; nullptr if the
  // results are kept until the end.
  absl::StatusOr<OpenBlock*> Block();
  // Makes the block of an element of one leaf with these dims, and returns the leaf's memory.
  absl::StatusOr<absl::Span<std::byte>> PlaceOnlyLeaf(DType dtype, absl::Span<const int64_t> dims);

  Pool& pool_;
  const int64_t place_;
  Spec spec_;
  size_t given_ = 0;
  std::optional<OpenBlock> block_;
  std::vector<Kept> kept_;
  Element whole_;  // a copy of the only leaf
};

}  // namespace penstock
