// SPDX-License-Identifier: Apache-2.0
// A row of a batch of known size whose values are padded as they are written.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/transforms/padding.h"
#include "dataplane/dataset/transforms/static_batch.h"

namespace penstock {

// Values whose first dimension alone is padded are written where they stay;
// those that come to lie apart are kept aside until Finish(). So are those that do
// not fit: whoever writes them need not know, and the error is the same whoever
// that is.
class PaddedRow final : public ResultSink {
 public:
  // `padding`, whose shapes are all static, outlives this.
  PaddedRow(OpenBatch::Row row, const RowPadding& padding) : row_(row), padding_(padding) {}

  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override;
  absl::Status Copy(size_t i, const Tensor& value) override;
  // Once all leaves were written. InvalidArgument names the first that does not fit.
  absl::Status Finish();

 private:
  struct Deferred {
    size_t leaf;
    std::vector<int64_t> dims;
    std::vector<std::byte> values;
    std::byte* to;  // nullptr: it does not fit
  };
  // Whether leaf `i` fits; keeps the error if not.
  bool Fits(size_t i, absl::Span<const int64_t> dims);
  absl::Span<std::byte> Defer(size_t i, DType dtype, absl::Span<const int64_t> dims, std::byte* to);

  OpenBatch::Row row_;
  const RowPadding& padding_;
  absl::InlinedVector<Deferred, 1> deferred_;
  absl::Status misfit_;
  size_t misfit_leaf_ = 0;
};

}  // namespace penstock
