// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/row_chunk.h"

#include <algorithm>
#include <utility>

#include "dataplane/element/copy_bytes.h"
#include "include/status_macros.h"
#include "penstock/check.h"

namespace penstock {
namespace {

// The size of a chunk's inputs. Results and intermediate values take one to two times as much in
// addition.
constexpr size_t kChunkBytes = size_t{8} << 10;

}  // namespace

absl::StatusOr<RowChunk> RowChunk::Create(FunctionOverRows function, const Spec& input,
                                          int64_t most_rows) {
  RowChunk chunk;
  chunk.input_ = input;
  ASSIGN_OR_RETURN(chunk.function_, BoundFunction::Bind(std::move(function.def)));
  chunk.leaves_ = std::move(function.leaves);
  chunk.columns_.resize(input.leaves().size());
  size_t row_bytes = 0;
  for (size_t leaf : chunk.leaves_) {
    const TensorSpec& spec = input.leaves()[leaf];
    Column& column = chunk.columns_[leaf];
    column.row_bytes = spec.shape.ElementCount() * SizeOf(spec.dtype);
    const Shape many = spec.shape.WithLeading(0);
    column.dims.assign(many.dims().begin(), many.dims().end());
    row_bytes += column.row_bytes;
  }
  chunk.capacity_ =
      std::clamp<int64_t>(static_cast<int64_t>(kChunkBytes / row_bytes), 1, most_rows);
  for (size_t leaf : chunk.leaves_) {
    Column& column = chunk.columns_[leaf];
    column.values = std::make_unique<std::byte[]>(chunk.capacity_ * column.row_bytes);
  }
  return chunk;
}

absl::StatusOr<absl::Span<std::byte>> RowChunk::Sink::Place(size_t i, DType dtype,
                                                            absl::Span<const int64_t> dims) {
  const TensorSpec& spec = chunk->input_.leaves()[i];
  const Column& column = chunk->columns_[i];
  if (dtype != spec.dtype || !spec.shape.Admits(dims))
    return absl::InternalError("a row does not match its spec");
  if (column.values != nullptr)
    return absl::MakeSpan(column.values.get() + chunk->rows_ * column.row_bytes, column.row_bytes);
  size_t bytes = SizeOf(dtype);
  for (int64_t dim : dims) bytes *= dim;
  chunk->unused_.resize(std::max(chunk->unused_.size(), bytes));
  return absl::MakeSpan(chunk->unused_.data(), bytes);
}

absl::Status RowChunk::Sink::Copy(size_t i, const Tensor& value) {
  if (chunk->columns_[i].values == nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const absl::Span<std::byte> memory, Place(i, value.dtype(), value.dims()));
  CopyBytes(memory.data(), value.raw(), memory.size());
  return absl::OkStatus();
}

void RowChunk::Clear() {
  rows_ = 0;
  failed_.clear();
  sink_.chunk = this;
}

void RowChunk::Add(bool failed) {
  PENSTOCK_CHECK(!full());
  if (failed) failed_.push_back(rows_);
  ++rows_;
}

absl::Status RowChunk::RunRows(OpenBatch& batch, int64_t first_of_batch, int64_t first,
                               int64_t count) const {
  std::vector<std::vector<int64_t>> dims;
  std::vector<Tensor> inputs;
  dims.reserve(leaves_.size());
  inputs.reserve(leaves_.size());
  for (size_t leaf : leaves_) {
    const Column& column = columns_[leaf];
    dims.push_back(column.dims);
    dims.back()[0] = count;
    inputs.emplace_back(input_.leaves()[leaf].dtype, dims.back(),
                        column.values.get() + first * column.row_bytes);
  }
  OpenBatch::Rows sink = batch.rows(first_of_batch + first, count);
  return function_->Run(inputs, RandomKey(), sink);  // the function draws no random numbers
}

void RowChunk::Run(OpenBatch& batch, int64_t first,
                   absl::FunctionRef<void(int64_t, const absl::Status&)> error) const {
  if (rows_ == 0) return;
  if (failed_.empty() && RunRows(batch, first, 0, rows_).ok()) return;
  for (int64_t row = 0; row < rows_; ++row) {
    if (std::binary_search(failed_.begin(), failed_.end(), row)) continue;
    if (absl::Status run = RunRows(batch, first, row, 1); !run.ok()) error(row, run);
  }
}

}  // namespace penstock
