// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/batch_iterator.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/dataset/transforms/batch/batching_iterator.h"
#include "dataplane/dataset/transforms/batch/padded_row.h"
#include "dataplane/dataset/transforms/batch/row_errors.h"
#include "dataplane/dataset/transforms/batch/stack_rows.h"
#include "dataplane/dataset/transforms/batch/static_batch.h"
#include "dataplane/dataset/transforms/buffer_charge.h"
#include "dataplane/memory/catch_exhausted.h"
#include "dataplane/memory/element_limit.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

// Reads the rows of one batch after another. Subclasses combine them.
class BatchIterator : public BatchingIterator {
 public:
  BatchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input)
      : BatchingIterator(site, std::move(input), kRememberSeldom) {}

  absl::StatusOr<std::optional<Element>> Next() final {
    RETURN_IF_ERROR(Begin());
    RowErrors errors;
    int64_t row = 0;
    while (row < rows_) {
      absl::StatusOr<bool> read = ReadRow(input_, row);
      if (!read.ok()) {
        if (EndsReading(read.status())) return read.status();
        errors.Add(row, read.status());
      } else if (!*read) {
        break;
      }
      ++row;
    }
    if (row == 0 || (row < rows_ && drop_remainder_)) {
      Drop();
      return std::nullopt;
    }
    GaveUpTo(input_.pulled());
    absl::StatusOr<Element> batch = Put(row, errors.ForBatch());
    if (!batch.ok()) return Annotate(batch.status(), "in ", site_.name());
    return *std::move(batch);
  }

 protected:
  virtual absl::Status Begin() = 0;
  // False at the end. After an error the row has no value.
  virtual absl::StatusOr<bool> ReadRow(PositionedInput& input, int64_t row) = 0;
  // Returns the batch of the rows read, or `errors` if they are not OK.
  virtual absl::StatusOr<Element> Put(int64_t rows, absl::Status errors) = 0;
  virtual void Drop() = 0;
};

// Writes rows of known size directly into the batch.
class InPlaceIterator final : public BatchIterator {
 public:
  InPlaceIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input, Spec row,
                  std::optional<RowPadding> padding)
      : BatchIterator(site, std::move(input)),
        batches_(site.pool(), std::move(row), site.spec(), site.attr<int64_t>("batch_size")),
        padding_(std::move(padding)) {}

 private:
  absl::Status Begin() override {
    ASSIGN_OR_RETURN(open_, batches_.Open());
    return absl::OkStatus();
  }
  absl::StatusOr<bool> ReadRow(PositionedInput& input, int64_t row) override {
    OpenBatch::Row sink = open_->row(row);
    if (!padding_.has_value()) return input.NextInto(sink);
    PaddedRow padded(sink, *padding_);
    ASSIGN_OR_RETURN(const bool read, input.NextInto(padded));
    if (read) RETURN_IF_ERROR(padded.Finish());
    return read;
  }
  absl::StatusOr<Element> Put(int64_t rows, absl::Status errors) override {
    OpenBatch open = *std::move(open_);
    open_.reset();
    RETURN_IF_ERROR(errors);
    return batches_.Seal(std::move(open), rows);
  }
  void Drop() override { open_.reset(); }

  const StaticBatches batches_;
  const std::optional<RowPadding> padding_;
  std::optional<OpenBatch> open_;
};

constexpr int64_t kChargedAtOnce = int64_t{1} << 20;  // bytes

// Holds rows of other kinds until all rows of the batch are read.
class StackIterator final : public BatchIterator {
 public:
  StackIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                std::optional<RowPadding> padding)
      : BatchIterator(site, std::move(input)), padding_(std::move(padding)) {}

 private:
  absl::Status Begin() override {
    Drop();
    return absl::OkStatus();
  }
  absl::StatusOr<bool> ReadRow(PositionedInput& input, int64_t) override {
    ASSIGN_OR_RETURN(std::optional<Element> next, input.Next());
    if (!next.has_value()) return false;
    bytes_ += next->block().size();
    RETURN_IF_ERROR(Charge(*next));
    elements_.push_back(*std::move(next));
    if (bytes_ >
        static_cast<size_t>(MostElementBytes())) {  // perhaps long before all rows are read
      return OfReading(
          AboveElementLimit(absl::StrCat(site_.name(), ": a batch, of which ", elements_.size(),
                                         " rows take ", bytes_, " bytes,")));
    }
    return true;
  }
  absl::StatusOr<Element> Put(int64_t, absl::Status errors) override {
    absl::StatusOr<Element> batch = errors.ok()
                                        ? StackRows(site_.pool(), elements_, site_.spec(),
                                                    padding_.has_value() ? &*padding_ : nullptr)
                                        : std::move(errors);
    Drop();  // returns their slots now, not at the next batch
    return batch;
  }
  void Drop() override {
    elements_.clear();
    charges_.clear();
    bytes_ = uncharged_ = 0;
  }

  // Charges rows in steps, so that a batch of few bytes costs nothing.
  absl::Status Charge(const Element& row) {
    uncharged_ += static_cast<int64_t>(row.loan().bytes().size()) + BufferCharge::kOverhead;
    if (uncharged_ < kChargedAtOnce) return absl::OkStatus();
    return charges_.emplace_back().Add(site_, std::exchange(uncharged_, 0));
  }

  const std::optional<RowPadding> padding_;
  std::vector<Element> elements_;
  size_t bytes_ = 0;  // of elements_
  std::vector<BufferCharge> charges_;
  int64_t uncharged_ = 0;  // bytes of elements_
};

}  // namespace

// The choice of the class depends only on the definition, so a position means the same on every
// machine.
absl::StatusOr<std::unique_ptr<NodeIterator>> BuildBatchIterator(
    const BuildSite& site, std::optional<RowPadding> padding) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, site.BuildInput(0));
  const Spec row = padding.has_value() ? padding->row : site.node().inputs[0]->spec;
  if (StaticBatches::Fit(row, site.attr<int64_t>("batch_size")))
    return std::make_unique<InPlaceIterator>(site, std::move(input), row, std::move(padding));
  return std::make_unique<StackIterator>(site, std::move(input), std::move(padding));
}

}  // namespace penstock
