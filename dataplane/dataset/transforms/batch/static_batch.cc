// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/static_batch.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "dataplane/element/copy_bytes.h"
#include "dataplane/memory/catch_exhausted.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock {
namespace {

constexpr int64_t kMostStaticBytes = int64_t{1} << 30;

absl::Status OtherThanPromised(DType dtype, absl::Span<const int64_t> dims,
                               const TensorSpec& spec) {
  return absl::InternalError(absl::StrCat("got a value of ", std::string(Name(dtype)), " [",
                                          absl::StrJoin(dims, ","), "], expected ",
                                          spec.ToString()));
}

}  // namespace

absl::StatusOr<absl::Span<std::byte>> OpenBatch::Row::Place(size_t i, DType dtype,
                                                            absl::Span<const int64_t> dims) {
  const Leaf& leaf = batch_.leaves_[i];
  if (dtype != leaf.spec->dtype || dims != leaf.spec->shape.dims())
    return OtherThanPromised(dtype, dims, *leaf.spec);
  return absl::MakeSpan(leaf.values + number_ * leaf.row_bytes, leaf.row_bytes);
}

absl::Status OpenBatch::Row::Copy(size_t i, const Tensor& value) {
  ASSIGN_OR_RETURN(const absl::Span<std::byte> memory, Place(i, value.dtype(), value.dims()));
  CopyBytes(memory.data(), value.raw(), memory.size());
  return absl::OkStatus();
}

absl::StatusOr<absl::Span<std::byte>> OpenBatch::Rows::Place(size_t i, DType dtype,
                                                             absl::Span<const int64_t> dims) {
  const Leaf& leaf = batch_.leaves_[i];
  if (dtype != leaf.spec->dtype || dims.empty() || dims[0] != count_ ||
      dims.subspan(1) != leaf.spec->shape.dims())
    return OtherThanPromised(dtype, dims, *leaf.spec);
  return absl::MakeSpan(leaf.values + first_ * leaf.row_bytes, count_ * leaf.row_bytes);
}

absl::Status OpenBatch::Rows::Copy(size_t i, const Tensor& value) {
  ASSIGN_OR_RETURN(const absl::Span<std::byte> memory, Place(i, value.dtype(), value.dims()));
  CopyBytes(memory.data(), value.raw(), memory.size());
  return absl::OkStatus();
}

bool StaticBatches::Fit(const Spec& row, int64_t rows) {
  for (const TensorSpec& leaf : row.leaves()) {
    if (!leaf.IsStatic()) return false;
    int64_t bytes = static_cast<int64_t>(SizeOf(leaf.dtype));
    if (__builtin_mul_overflow(bytes, leaf.shape.ElementCount(), &bytes) ||
        __builtin_mul_overflow(bytes, rows, &bytes) || bytes > kMostStaticBytes)
      return false;
  }
  return true;
}

StaticBatches::StaticBatches(Pool& pool, Spec row, Spec batch, int64_t rows)
    : pool_(pool),
      row_(std::move(row)),
      batch_(std::move(batch)),
      rows_(rows),
      layout_(LayoutFor(rows)) {}

BlockLayout StaticBatches::LayoutFor(int64_t rows) const {
  std::vector<TensorSpec> leaves;
  for (const TensorSpec& leaf : row_.leaves())
    leaves.push_back(Dense(leaf.dtype, leaf.shape.WithLeading(rows)));
  return BlockLayout::OfStatic(row_.WithLeaves(leaves));
}

absl::StatusOr<OpenBatch> StaticBatches::Open(int64_t place) const {
  absl::StatusOr<OpenBlock> block = NewBlock(pool_, layout_, batch_, place);
  if (!block.ok()) return OfReading(block.status());
  OpenBatch batch(*std::move(block));
  batch.leaves_.reserve(row_.leaves().size());
  for (size_t i = 0; i < row_.leaves().size(); ++i) {
    const absl::Span<std::byte> values = batch.block_.writer.data(i);
    batch.leaves_.push_back({values.data(), values.size() / rows_, &row_.leaves()[i]});
  }
  return batch;
}

absl::StatusOr<Element> StaticBatches::Seal(OpenBatch batch, int64_t rows) const {
  PENSTOCK_CHECK(rows <= rows_);
  if (rows == rows_) return std::move(batch.block_).Seal(batch_);
  ASSIGN_OR_RETURN(OpenBlock block, NewBlock(pool_, LayoutFor(rows), batch_));
  for (size_t i = 0; i < batch.leaves_.size(); ++i) {
    const OpenBatch::Leaf& leaf = batch.leaves_[i];
    if (leaf.row_bytes > 0)
      CopyBytes(block.writer.data(i).data(), leaf.values, rows * leaf.row_bytes);
  }
  return std::move(block).Seal(batch_);
}

}  // namespace penstock
