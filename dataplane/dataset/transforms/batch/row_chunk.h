// SPDX-License-Identifier: Apache-2.0
// Some rows of a Map's input side by side, and the Map's function to run over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/dataset/expr/over_rows.h"
#include "dataplane/dataset/transforms/batch/static_batch.h"
#include "penstock/spec.h"

namespace penstock {

// Used on one thread.
class RowChunk {
 public:
  // `input` is the spec of one row of the function's input. A chunk has at most `most_rows` rows,
  // and no more rows than fit into a processor's first-level cache.
  static absl::StatusOr<RowChunk> Create(FunctionOverRows function, const Spec& input,
                                         int64_t most_rows);
  RowChunk(RowChunk&&) = default;

  bool full() const { return rows_ == capacity_; }
  int64_t rows() const { return rows_; }
  void Clear();

  // The sink for the next row, until Add().
  ResultSink& next_row() { return sink_; }
  // Adds the row, which has been written. A `failed` row is not computed.
  void Add(bool failed);

  // Writes the results to the rows of `batch` from `first` on. If the function fails, computes the
  // rows one by one, and calls `error(row of the chunk, status)` for each row that fails.
  void Run(OpenBatch& batch, int64_t first,
           absl::FunctionRef<void(int64_t, const absl::Status&)> error) const;

 private:
  struct Column {  // a leaf of the element
    size_t row_bytes = 0;
    std::unique_ptr<std::byte[]> values;  // nullptr: not an input of the function
    std::vector<int64_t> dims;            // of many rows; the first dim is not set
  };
  class Sink final : public ResultSink {
   public:
    absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                                absl::Span<const int64_t> dims) override;
    absl::Status Copy(size_t i, const Tensor& value) override;
    RowChunk* chunk = nullptr;
  };

  RowChunk() = default;
  absl::Status RunRows(OpenBatch& batch, int64_t first_of_batch, int64_t first,
                       int64_t count) const;

  Spec input_;
  std::shared_ptr<const BoundFunction> function_;
  std::vector<size_t> leaves_;  // inputs of the function
  std::vector<Column> columns_;
  std::vector<std::byte> unused_;  // for leaves that are not inputs
  int64_t capacity_ = 0;
  int64_t rows_ = 0;
  std::vector<int64_t> failed_;  // ascending
  Sink sink_;
};

}  // namespace penstock
