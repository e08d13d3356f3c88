// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/padded_row.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/row_view.h"
#include "dataplane/dataset/transforms/batch/batch_spec.h"
#include "include/status_macros.h"

namespace penstock {

bool PaddedRow::Fits(size_t i, absl::Span<const int64_t> dims) {
  const absl::Status fits = CheckFits(dims, padding_.row.leaves()[i].shape);
  if (fits.ok()) return true;
  if (misfit_.ok() || i < misfit_leaf_) {
    misfit_ = absl::Status(fits.code(), absl::StrCat(ComponentName(padding_.row, i), " ",
                                                     std::string(fits.message())));
    misfit_leaf_ = i;
  }
  return false;
}

absl::Span<std::byte> PaddedRow::Defer(size_t i, DType dtype, absl::Span<const int64_t> dims,
                                       std::byte* to) {
  const size_t bytes = Product(dims) * SizeOf(dtype);
  deferred_.push_back(Deferred{i, std::vector<int64_t>(dims.begin(), dims.end()),
                               std::vector<std::byte>(bytes), to});
  return absl::MakeSpan(deferred_.back().values);
}

absl::StatusOr<absl::Span<std::byte>> PaddedRow::Place(size_t i, DType dtype,
                                                       absl::Span<const int64_t> dims) {
  if (!Fits(i, dims)) return Defer(i, dtype, dims, nullptr);
  const absl::Span<const int64_t> padded = padding_.row.leaves()[i].shape.dims();
  ASSIGN_OR_RETURN(const absl::Span<std::byte> whole, row_.Place(i, dtype, padded));
  if (!dims.empty() && dims.subspan(1) != padded.subspan(1))
    return Defer(i, dtype, dims, whole.data());
  const size_t bytes = Product(dims) * SizeOf(dtype);
  FillWith(padding_.values->tensor(i), whole.subspan(bytes));
  return whole.first(bytes);
}

absl::Status PaddedRow::Copy(size_t i, const Tensor& value) {
  if (!Fits(i, value.dims())) return absl::OkStatus();
  const absl::Span<const int64_t> padded = padding_.row.leaves()[i].shape.dims();
  ASSIGN_OR_RETURN(const absl::Span<std::byte> whole, row_.Place(i, value.dtype(), padded));
  WritePadded(value, padded, padding_.values->tensor(i), whole.data());
  return absl::OkStatus();
}

absl::Status PaddedRow::Finish() {
  for (const Deferred& deferred : deferred_) {
    if (deferred.to == nullptr) continue;
    const TensorSpec& leaf = padding_.row.leaves()[deferred.leaf];
    WritePadded(Tensor(leaf.dtype, deferred.dims, deferred.values.data()), leaf.shape.dims(),
                padding_.values->tensor(deferred.leaf), deferred.to);
  }
  return misfit_;
}

}  // namespace penstock
