// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/map_batch.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "dataplane/dataset/transforms/map_step.h"
#include "dataplane/dataset/transforms/ordered_calls.h"
#include "dataplane/dataset/transforms/positioned_input.h"
#include "dataplane/dataset/transforms/row_errors.h"
#include "dataplane/dataset/transforms/static_batch.h"
#include "penstock/status.h"

namespace penstock {
namespace {

constexpr int64_t kRemember = 64;       // elements between two remembered positions, at least
constexpr int64_t kCallsPerThread = 4;  // pieces of a batch, so that threads end together

// A batch under way: rows are read in order, mapped in any order.
class BatchInWork {
 public:
  BatchInWork(const StaticBatches& batches, MapStep& step, int64_t rows)
      : batches_(batches),
        step_(step),
        most_rows_(rows),
        rows_per_call_(step.parallelism() == 1
                           ? rows
                           : std::max<int64_t>(1, rows / (kCallsPerThread * step.parallelism()))) {}

  bool begun() const { return open_.has_value(); }
  bool full() const { return rows_ == most_rows_; }
  int64_t rows() const { return rows_; }

  // `first` is the number of the batch's first element in the Map's input.
  absl::Status Begin(int64_t first) {
    ASSIGN_OR_RETURN(open_, batches_.Open());
    first_ = first;
    rows_ = 0;
    inputs_.clear();
    errors_ = RowErrors();
    calls_used_ = 0;
    alone_ = step_.parallelism() == 1 || step_.QuickerAlone(rows_per_call_);
    return absl::OkStatus();
  }

  // The next row's input, or the error in its place.
  void Add(absl::StatusOr<Element> input, OrderedCalls& calls) {
    const int64_t row = rows_++;
    if (!input.ok()) {
      Failed(row, input.status());
      if (!alone_) inputs_.emplace_back();
    } else if (alone_) {
      RunRow(row, *input);
    } else {
      inputs_.push_back(*std::move(input));
    }
    if (!alone_ && static_cast<int64_t>(inputs_.size()) == rows_per_call_) Dispatch(calls);
  }

  // No more rows will come.
  void Finish(OrderedCalls& calls) {
    if (!inputs_.empty()) Dispatch(calls);
  }

  // Waits for all rows.
  void Await(OrderedCalls& calls) {
    for (size_t i = 0; i < calls_used_; ++i) calls.Await(*calls_[i]);
  }

  // The batch, or the error that stands for it. REQUIRES: Await() returned.
  absl::StatusOr<Element> Take() {
    OpenBatch open = *std::move(open_);
    open_.reset();
    RETURN_IF_ERROR(errors_.ForBatch());
    return batches_.Seal(std::move(open), rows_);
  }
  void Drop() { open_.reset(); }

 private:
  // Some rows in a row.
  struct Rows final : OrderedCalls::Call {
    void Run() override {
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i]) batch->RunRow(first + static_cast<int64_t>(i), inputs[i]);
      inputs.clear();
    }
    BatchInWork* batch = nullptr;
    int64_t first = 0;
    std::vector<Element> inputs;  // an empty element: failed already
  };

  void RunRow(int64_t row, const Element& input) {
    OpenBatch::Row sink = open_->row(row);
    if (absl::Status run = step_.Run(input, first_ + row, sink); !run.ok()) Failed(row, run);
  }

  void Failed(int64_t row, const absl::Status& error) {
    std::lock_guard lock(mu_);
    errors_.Add(row, error);
  }

  void Dispatch(OrderedCalls& calls) {
    if (calls_used_ == calls_.size()) calls_.push_back(std::make_unique<Rows>());
    Rows& call = *calls_[calls_used_++];
    call.batch = this;
    call.first = rows_ - static_cast<int64_t>(inputs_.size());
    std::swap(call.inputs, inputs_);  // gives the capacity of an earlier use back
    calls.Add(call);
  }

  const StaticBatches& batches_;
  MapStep& step_;
  const int64_t most_rows_;
  const int64_t rows_per_call_;

  std::optional<OpenBatch> open_;
  int64_t first_ = 0;
  int64_t rows_ = 0;             // read so far
  bool alone_ = false;           // rows are mapped as they are read
  std::vector<Element> inputs_;  // read, not yet dispatched
  std::vector<std::unique_ptr<Rows>> calls_;
  size_t calls_used_ = 0;

  std::mutex mu_;
  RowErrors errors_;  // guarded by mu_ until all rows are done
};

class MapBatchIterator final : public NodeIterator {
 public:
  MapBatchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                   std::unique_ptr<MapStep> step)
      : site_(site),
        rows_(site.attr<int64_t>("batch_size")),
        drop_remainder_(site.attr<bool>("drop_remainder")),
        input_(std::move(input), std::max(rows_, kRemember)),
        step_(std::move(step)),
        batches_(site.pool(), site.node().inputs[0]->spec, site.spec(), rows_),
        calls_(ThreadPool::OfProcess(), step_->parallelism()) {
    const int ahead = step_->parallelism() == 1 ? 0 : 1;
    for (int i = 0; i <= ahead; ++i)
      work_.push_back(std::make_unique<BatchInWork>(batches_, *step_, rows_));
  }

  absl::StatusOr<std::optional<Element>> Next() override {
    RETURN_IF_ERROR(ReadAhead());
    if (ready_ == 0) return std::nullopt;
    BatchInWork& batch = *work_[first_];
    batch.Await(calls_);
    absl::StatusOr<Element> element = batch.Take();
    Pass(batch);
    RETURN_IF_ERROR(Annotate(element.status(), "in ", site_.name()));
    return *std::move(element);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    for (; ready_ > 0 && passed < count; ++passed) {
      BatchInWork& batch = *work_[first_];
      batch.Await(calls_);
      batch.Drop();
      Pass(batch);
    }
    if (passed == count || ended_) return passed;
    int64_t wanted;
    if (__builtin_mul_overflow(count - passed, rows_, &wanted))
      wanted = std::numeric_limits<int64_t>::max();
    ASSIGN_OR_RETURN(const int64_t rows, input_.Skip(wanted));
    ended_ = rows < wanted;
    given_ = input_.pulled();
    input_.Release(given_);
    return passed + rows / rows_ + (rows % rows_ != 0 && !drop_remainder_ ? 1 : 0);
  }

  absl::Status Save(StateWriter& writer) override { return input_.Save(writer, given_); }

  absl::Status Restore(StateReader& reader) override {
    RETURN_IF_ERROR(input_.Restore(reader));
    given_ = input_.pulled();
    return absl::OkStatus();
  }

 private:
  // Reads batches until all places are taken or the input has ended.
  absl::Status ReadAhead() {
    while (ready_ < work_.size() && !ended_) {
      BatchInWork& batch = *work_[(first_ + ready_) % work_.size()];
      if (!batch.begun()) RETURN_IF_ERROR(batch.Begin(input_.pulled()));
      while (!batch.full() && !ended_) {
        absl::StatusOr<std::optional<Element>> input = input_.Next();
        if (!input.ok()) {
          if (EndsReading(input.status())) return input.status();
          batch.Add(input.status(), calls_);
        } else if (input->has_value()) {
          batch.Add(**std::move(input), calls_);
        } else {
          ended_ = true;
        }
      }
      batch.Finish(calls_);
      if (batch.full() || (batch.rows() > 0 && !drop_remainder_)) {
        ++ready_;
      } else {
        batch.Await(calls_);
        batch.Drop();
      }
    }
    return absl::OkStatus();
  }

  void Pass(const BatchInWork& batch) {
    given_ += batch.rows();
    input_.Release(given_);
    first_ = (first_ + 1) % work_.size();
    --ready_;
  }

  BuildSite site_;
  const int64_t rows_;
  const bool drop_remainder_;
  PositionedInput input_;
  std::unique_ptr<MapStep> step_;
  StaticBatches batches_;
  bool ended_ = false;
  int64_t given_ = 0;  // elements in batches given out
  std::vector<std::unique_ptr<BatchInWork>> work_;
  size_t first_ = 0;    // of work_: the next to be given out
  size_t ready_ = 0;    // batches read to their end
  OrderedCalls calls_;  // ended before what its calls use
};

}  // namespace

bool IsMapBatch(const Dataset::Node& node) {
  const Dataset::Node& input = *node.inputs[0];
  return input.op == "Map" &&
         StaticBatches::Fit(input.spec, Get<int64_t>(node.attrs, "batch_size"));
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMapBatch(const BuildSite& site) {
  const BuildSite map = site.InputSite(0);
  ASSIGN_OR_RETURN(std::unique_ptr<MapStep> step, MapStep::Create(map));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, map.BuildInput(0));
  return std::make_unique<MapBatchIterator>(site, std::move(input), std::move(step));
}

}  // namespace penstock
