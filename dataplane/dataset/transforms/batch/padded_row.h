// SPDX-License-Identifier: Apache-2.0
// A row of a batch of known size. Values are padded as they are written.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/transforms/batch/padding.h"
#include "dataplane/dataset/transforms/batch/static_batch.h"

namespace penstock {

// Values that are padded only in their first dimension are written in place. Values whose parts are
// not contiguous in the row are buffered until Finish(). Values that do not fit are buffered too,
// so that the writer need not check them and the error is the same for every writer.
class PaddedRow final : public ResultSink {
 public:
  // `padding`, whose shapes are all static, must outlive this object.
  PaddedRow(OpenBatch::Row row, const RowPadding& padding) : row_(row), padding_(padding) {}

  absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                              absl::Span<const int64_t> dims) override;
  absl::Status Copy(size_t i, const Tensor& value) override;
  // Called after all leaves were written. InvalidArgument names the first leaf that does not fit.
  absl::Status Finish();

 private:
  struct Deferred {
    size_t leaf;
    std::vector<int64_t> dims;
    std::vector<std::byte> values;
    std::byte* to;  // nullptr if it does not fit
  };
  // Returns whether leaf `i` fits. Keeps the error if it does not.
  bool Fits(size_t i, absl::Span<const int64_t> dims);
  absl::Span<std::byte> Defer(size_t i, DType dtype, absl::Span<const int64_t> dims, std::byte* to);

  OpenBatch::Row row_;
  const RowPadding& padding_;
  absl::InlinedVector<Deferred, 1> deferred_;
  absl::Status misfit_;
  size_t misfit_leaf_ = 0;
};

}  // namespace penstock
