// SPDX-License-Identifier: Apache-2.0
// The results of a function as an element of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// Where all leaves are static, results are written in place into the element's
// block; otherwise they are kept aside until their sizes are known. One thread.
class ElementSink final : public ResultSink {
 public:
  ElementSink(Pool& pool, const Spec& spec) : pool_(pool), spec_(spec) {}

  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override;
  absl::Status Copy(size_t i, const Tensor& value) override;

  // The element. Internal if a leaf was not given.
  absl::StatusOr<Element> Finish() &&;

 private:
  struct Kept {
    std::vector<int64_t> dims;
    std::unique_ptr<std::byte[]> values;  // placed, or
    Element copy;                         // copied
    Tensor tensor;                        // a view of either
  };

  // The block that results are written into, made at the first result.
  absl::StatusOr<OpenBlock*> Block();

  Pool& pool_;
  Spec spec_;
  size_t given_ = 0;
  std::optional<OpenBlock> block_;
  std::vector<Kept> kept_;
};

}  // namespace penstock
