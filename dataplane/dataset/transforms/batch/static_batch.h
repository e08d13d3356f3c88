// SPDX-License-Identifier: Apache-2.0
// A batch whose rows all have the same known size. Its block is laid out before a row is read, and
// each row is written in place, into the memory that will be sent.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/expr/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// A batch that is being filled. Several threads may write rows, one thread per row.
class OpenBatch {
 public:
  // The memory of one row.
  class Row final : public ResultSink {
   public:
    Row(const OpenBatch& batch, int64_t number) : batch_(batch), number_(number) {}
    absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                                absl::Span<const int64_t> dims) override;
    absl::Status Copy(size_t i, const Tensor& value) override;

   private:
    const OpenBatch& batch_;
    const int64_t number_;
  };

  Row row(int64_t number) const { return Row(*this, number); }

  // The memory of `count` rows from `first` on, for values with one more dimension in front.
  class Rows final : public ResultSink {
   public:
    Rows(const OpenBatch& batch, int64_t first, int64_t count)
        : batch_(batch), first_(first), count_(count) {}
    absl::StatusOr<absl::Span<std::byte>> Place(size_t i, DType dtype,
                                                absl::Span<const int64_t> dims) override;
    absl::Status Copy(size_t i, const Tensor& value) override;

   private:
    const OpenBatch& batch_;
    const int64_t first_;
    const int64_t count_;
  };
  Rows rows(int64_t first, int64_t count) const { return Rows(*this, first, count); }

 private:
  friend class StaticBatches;
  struct Leaf {
    std::byte* values;
    size_t row_bytes;
    const TensorSpec* spec;  // of a row
  };
  explicit OpenBatch(OpenBlock block) : block_(std::move(block)) {}

  OpenBlock block_;
  std::vector<Leaf> leaves_;
};

// Makes the batches of one node.
class StaticBatches {
 public:
  // Returns whether `rows` elements of `row` are batched this way. False for a batch of more than 1
  // GiB, because such a size may stand for "all elements".
  static bool Fit(const Spec& row, int64_t rows);

  // `batch` is the spec of the result. REQUIRES: Fit(row, rows).
  StaticBatches(Pool& pool, Spec row, Spec batch, int64_t rows);

  // `place` is a value of Pool::PlaceOf().
  absl::StatusOr<OpenBatch> Open(int64_t place = kNoPlace) const;
  // Returns the batch of the first `rows` rows, which must all have been written. If the block is
  // for more rows, the first `rows` rows are copied to a block of their own.
  absl::StatusOr<Element> Seal(OpenBatch batch, int64_t rows) const;

 private:
  BlockLayout LayoutFor(int64_t rows) const;

  Pool& pool_;
  const Spec row_;
  const Spec batch_;
  const int64_t rows_;
  const BlockLayout layout_;  // of full batches
};

}  // namespace penstock
