// SPDX-License-Identifier: Apache-2.0
// A batch whose rows all have one known size: its block is laid out before a
// row is read, and each row is written where it will be sent from.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "dataplane/dataset/function.h"
#include "dataplane/memory/pool.h"
#include "penstock/element.h"
#include "penstock/spec.h"

namespace penstock {

// A batch being filled. Rows may be written by several threads, each by one.
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

  // The memory of `count` rows from `first` on, for values with one dimension more in
  // front.
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
  // Whether elements of `row`, `rows` at a time, are batched this way. A batch
  // of more than 1 GiB is not: it may stand for "all there is".
  static bool Fit(const Spec& row, int64_t rows);

  // REQUIRES: Fit(row, rows). `batch` is the spec of what is made.
  StaticBatches(Pool& pool, Spec row, Spec batch, int64_t rows);

  // `place`: of Pool::PlaceOf().
  absl::StatusOr<OpenBatch> Open(int64_t place = kNoPlace) const;
  // The batch of the first `rows` rows, all of which were written. Fewer than
  // there is room for: in a block of their own, copied.
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
