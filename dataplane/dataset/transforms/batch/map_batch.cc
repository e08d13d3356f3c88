// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/transforms/batch/map_batch.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "control/sync/mutex.h"
#include "dataplane/dataset/engine/element_views.h"
#include "dataplane/dataset/engine/profile.h"
#include "dataplane/dataset/engine/read_ahead.h"
#include "dataplane/dataset/transforms/batch/batching_iterator.h"
#include "dataplane/dataset/transforms/batch/map_over_rows.h"
#include "dataplane/dataset/transforms/batch/padded_row.h"
#include "dataplane/dataset/transforms/batch/row_errors.h"
#include "dataplane/dataset/transforms/batch/static_batch.h"
#include "dataplane/dataset/transforms/map/map_step.h"
#include "dataplane/dataset/transforms/map/ordered_calls.h"
#include "dataplane/dataset/transforms/ring.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr int64_t kCallsPerThread = 4;     // per batch, so that threads finish together
constexpr int64_t kMostBatchesAhead = 64;  // batches

// The spec of a row of the batch.
const Spec& SpecOfMappedRow(const Dataset::Node& node, const std::optional<RowPadding>& padding) {
  return padding.has_value() ? padding->row : node.inputs[0]->spec;
}

std::optional<RowPadding> PaddingOfNode(const Dataset::Node& node) {
  if (!node.attrs.contains("padded")) return std::nullopt;
  return PaddingOf(node.attrs);
}

// A batch in progress. Rows are read in order and mapped in any order.
class BatchInWork {
 public:
  BatchInWork(const StaticBatches& batches, const std::optional<RowPadding>& padding, MapStep& step,
              int64_t rows)
      : batches_(batches), padding_(padding), step_(step), most_rows_(rows) {}

  bool begun() const { return open_.has_value(); }
  bool full() const { return rows_ == most_rows_; }
  int64_t rows() const { return rows_; }

  // `first` is the number of the batch's first element in the Map's input. `place` is a value of
  // the pool's PlaceOf().
  absl::Status Begin(int64_t first, int64_t place) {
    ASSIGN_OR_RETURN(open_, batches_.Open(place));
    first_ = first;
    rows_ = 0;
    inputs_.clear();
    errors_ = RowErrors();
    calls_used_ = 0;
    rows_per_call_ = RowsPerCall();
    alone_ = step_.parallelism().calls() == 1 || step_.parallelism().QuickerAlone(rows_per_call_);
    return absl::OkStatus();
  }

  // Adds the next row's input, or the error in its place.
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

  // Called after the last row was added.
  void Finish(OrderedCalls& calls) {
    if (!inputs_.empty()) Dispatch(calls);
  }

  // Waits for all rows. Returns the same as OrderedCalls::Await().
  bool Await(OrderedCalls& calls) {
    bool others_idle = false;
    for (size_t i = 0; i < calls_used_; ++i) others_idle |= calls.Await(*calls_[i]);
    return others_idle;
  }

  // Returns the batch, or the error in its place. REQUIRES: Await() returned.
  absl::StatusOr<Element> Take() {
    OpenBatch open = *std::move(open_);
    open_.reset();
    RETURN_IF_ERROR(errors_.ForBatch());
    return batches_.Seal(std::move(open), rows_);
  }
  void Drop() { open_.reset(); }

 private:
  // Some consecutive rows.
  struct Rows final : OrderedCalls::Call {
    void Run() override {
      for (size_t i = 0; i < inputs.size(); ++i)
        if (inputs[i]) batch->RunRow(first + static_cast<int64_t>(i), inputs[i]);
      inputs.clear();
    }
    BatchInWork* batch = nullptr;
    int64_t first = 0;
    std::vector<Element> inputs;  // if an element is empty, its row has already failed
  };

  // Returns the number of rows per call: just enough to make a call worth another thread, since a
  // slow row delays the other rows of its call.
  int64_t RowsPerCall() const {
    if (step_.parallelism().calls() == 1) return most_rows_;
    const int64_t most =
        std::max<int64_t>(1, most_rows_ / (kCallsPerThread * step_.parallelism().calls()));
    return std::clamp<int64_t>(step_.parallelism().WorthACall(), 1, most);
  }

  void RunRow(int64_t row, const Element& input) {
    if (absl::Status run = MapInto(open_->row(row), input, first_ + row); !run.ok())
      Failed(row, run);
  }

  absl::Status MapInto(OpenBatch::Row row, const Element& input, int64_t number) {
    const ElementTensors leaves(input);
    if (!padding_.has_value()) return step_.Run(leaves, number, row);
    PaddedRow padded(row, *padding_);
    RETURN_IF_ERROR(step_.Run(leaves, number, padded));
    return padded.Finish();
  }

  void Failed(int64_t row, const absl::Status& error) {
    MutexLock lock(mu_);
    errors_.Add(row, error);
  }

  void Dispatch(OrderedCalls& calls) {
    if (calls_used_ == calls_.size()) calls_.push_back(std::make_unique<Rows>());
    Rows& call = *calls_[calls_used_++];
    call.batch = this;
    call.first = rows_ - static_cast<int64_t>(inputs_.size());
    std::swap(call.inputs, inputs_);  // reuses the capacity of an earlier call
    calls.Add(call);
  }

  const StaticBatches& batches_;
  const std::optional<RowPadding>& padding_;
  MapStep& step_;
  const int64_t most_rows_;

  std::optional<OpenBatch> open_;
  int64_t first_ = 0;
  int64_t rows_ = 0;  // read so far
  int64_t rows_per_call_ = 0;
  bool alone_ = false;           // rows are mapped as they are read
  std::vector<Element> inputs_;  // read, not dispatched yet
  std::vector<std::unique_ptr<Rows>> calls_;
  size_t calls_used_ = 0;

  Mutex mu_;
  RowErrors errors_;  // guarded by mu_ until all rows are done
};

class MapBatchIterator final : public BatchingIterator {
 public:
  MapBatchIterator(const BuildSite& site, std::unique_ptr<NodeIterator> input,
                   std::unique_ptr<MapStep> step, std::optional<RowPadding> padding)
      : BatchingIterator(site, std::move(input), kRemember, PositionedInput::Holds::kElements),
        step_(std::move(step)),
        padding_(std::move(padding)),
        batches_(site.pool(), SpecOfMappedRow(site.node(), padding_), site.spec(), rows_),
        map_profile_(site.InputSite(0).profile()),
        ahead_(site.read_ahead(), 1, step_->parallelism().autotune() ? kMostBatchesAhead : 0),
        calls_(ThreadPool::Of(site.run()), step_->parallelism().calls()) {}

  absl::StatusOr<std::optional<Element>> Next() override {
    RETURN_IF_ERROR(Fill());
    if (work_.taken() == 0) {
      input_.GaveEnd();
      return std::nullopt;
    }
    BatchInWork& batch = work_.front();
    Await(batch);
    absl::StatusOr<Element> element = batch.Take();
    Pass(batch);
    RETURN_IF_ERROR(Annotate(element.status(), "in ", site_.name()));
    ahead_.Gave(static_cast<int64_t>(element->block().size()));
    return *std::move(element);
  }

  absl::StatusOr<int64_t> Skip(int64_t count) override {
    int64_t passed = 0;
    for (; work_.taken() > 0 && passed < count; ++passed) {
      BatchInWork& batch = work_.front();
      Await(batch);
      batch.Drop();
      Pass(batch);
    }
    if (passed == count || ended_) return passed;
    ASSIGN_OR_RETURN(const int64_t rest, SkipBatches(count - passed));
    ended_ = rest < count - passed;
    return passed + rest;
  }

 private:
  void Await(BatchInWork& batch) {
    bool others_idle;
    {
      ProfileWait wait(site_.profile());
      others_idle = batch.Await(calls_);
    }
    if (others_idle) ahead_.FellShort();
  }

  // Reads batches until as many are in progress as allowed or the input has ended.
  absl::Status Fill() {
    const int parallelism = step_->parallelism().calls();
    calls_.SetParallelism(parallelism);
    const int64_t ahead = parallelism == 1 ? 0 : ahead_.depth();
    if (NodeProfile* profile = site_.profile()) profile->ahead = ahead;
    while (work_.taken() < static_cast<size_t>(1 + ahead) && !ended_) {
      if (work_.taken() == work_.places())
        work_.Add(std::make_unique<BatchInWork>(batches_, padding_, *step_, rows_));
      BatchInWork& batch = work_.next();
      if (!batch.begun())
        RETURN_IF_ERROR(batch.Begin(input_.pulled(), site_.pool().PlaceOf(Batches())));
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
        work_.Take();
      } else {
        batch.Await(calls_);
        batch.Drop();
      }
    }
    return absl::OkStatus();
  }

  // The number of batches that have been read completely but not returned.
  int64_t Batches() const { return static_cast<int64_t>(work_.taken()); }

  void Pass(const BatchInWork& batch) {
    GaveUpTo(given() + batch.rows());
    if (map_profile_ != nullptr)
      map_profile_->elements.fetch_add(batch.rows(), std::memory_order_relaxed);
    work_.Pop();
  }

  std::unique_ptr<MapStep> step_;
  const std::optional<RowPadding> padding_;
  StaticBatches batches_;
  bool ended_ = false;
  NodeProfile* const map_profile_;  // the Map has no iterator of its own here
  ReadAhead ahead_;
  Ring<BatchInWork> work_;  // taken: batches that are read completely
  OrderedCalls calls_;      // destroyed before the members that its calls use
};

}  // namespace

bool IsMapBatch(const Dataset::Node& node) {
  const Dataset::Node& input = *node.inputs[0];
  return input.op == "Map" && StaticBatches::Fit(SpecOfMappedRow(node, PaddingOfNode(node)),
                                                 Get<int64_t>(node.attrs, "batch_size"));
}

absl::StatusOr<std::unique_ptr<NodeIterator>> BuildMapBatch(const BuildSite& site) {
  if (GoesOverRows(site.node())) return BuildMapOverRows(site);
  const BuildSite map = site.InputSite(0);
  ASSIGN_OR_RETURN(std::unique_ptr<MapStep> step, MapStep::Create(map));
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> input, map.BuildInput(0));
  return std::make_unique<MapBatchIterator>(site, std::move(input), std::move(step),
                                            PaddingOfNode(site.node()));
}

}  // namespace penstock
