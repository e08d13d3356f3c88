// SPDX-License-Identifier: Apache-2.0
// The results of a function as an element of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Results are written in place into the element's block where its layout is
// known when they come: all leaves are static, or there is only one. Otherwise
// they are kept aside until all sizes are known: no block of the pool is lent for them. One thread.
class ElementSink final : public ResultSink {
 public:
  // `place`: of Pool::PlaceOf().
  ElementSink(Pool& pool, const Spec& spec, int64_t place = kNoPlace)
      : pool_(pool), place_(place), spec_(spec) {}

  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override;
  absl::Status Copy(size_t i, const Tensor& value) override;

  // The element. Internal if a leaf was not given.
  absl::StatusOr<Element> Finish() &&;

 private:
  struct Kept {
    std::vector<int64_t> dims;
    Loan values;    // placed, or
    Element copy;   // copied
    Tensor tensor;  // a view of either
  };

  // The block that results are written into, made at the first result; nullptr
  // if they are kept aside.
  absl::StatusOr<OpenBlock*> Block();
  // The block of an element of one leaf, with these dims.
  absl::StatusOr<absl::Span<std::byte>> PlaceOnlyLeaf(DType dtype, absl::Span<const int64_t> dims);

  Pool& pool_;
  const int64_t place_;
  Spec spec_;
  size_t given_ = 0;
  std::optional<OpenBlock> block_;
  std::vector<Kept> kept_;
  Element whole_;  // copied: the only leaf
};

}  // namespace penstock
