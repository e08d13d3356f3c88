// SPDX-License-Identifier: Apache-2.0
// One pipeline at work: an iterator whose elements its replicas get in turn, and
// what fills them up when it has ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/dataset/state_bytes.h"
#include "dataplane/memory/pool.h"
#include "dataplane/replica/input_plan.h"
#include "dataplane/replica/leading_rows.h"
#include "penstock/iterator.h"

namespace penstock::replica {

// What one replica gets in a step.
struct Portion {
  Element element;      // empty: there is none
  int64_t missing = 0;  // rows that a whole batch would have more; kUnknown: nobody knows
  bool whole() const { return element && missing == 0; }
  std::vector<float> weights;  // {}: all rows count 1
};

// One thread at a time, but for Stop().
class Pipeline {
 public:
  // `reading` gives what input.dataset does, made in slots of `pool` as far as it can be
  // (dataplane/dataset/iterator_output.h), which outlives the pipeline.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Start(const PipelineInput& input,
                                                         const Dataset& reading,
                                                         const DistributedDataset::Plan& plan,
                                                         uint64_t seed, int64_t epoch, Pool& pool);

  // The next step of its replicas. An error in one's place is all's; the next call
  // goes on with the step behind it.
  absl::StatusOr<std::vector<Portion>> Next();
  // Makes whole what is not, as the policy says. FailedPrecondition if it drops.
  absl::Status Fill(std::vector<Portion>& portions);

  absl::Status Save(StateWriter& writer);
  absl::Status Restore(StateReader& reader);
  absl::Status Commit(StateReader& reader);
  absl::Status Stop(absl::Duration bound) { return iterator_.Stop(bound); }

 private:
  // What Save() writes.
  struct Position {
    int64_t turn = 0;
    bool ended = false;
    State state;
  };
  static absl::StatusOr<Position> ReadPosition(StateReader& reader);

  Pipeline(const PipelineInput& input, const DistributedDataset::Plan& plan, uint64_t seed,
           int64_t epoch, Pool& pool, Iterator iterator)
      : input_(input),
        policy_(plan.options.partial_batches),
        coordinated_(plan.coordinated),
        pool_(pool),
        iterator_(std::move(iterator)),
        leading_rows_(input.front, seed, epoch) {}
  absl::Status Measure(int64_t wanted, Portion& portion) const;
  absl::Status FillRows(Portion& portion);

  const PipelineInput input_;
  const PartialBatches policy_;
  const bool coordinated_;
  Pool& pool_;
  Iterator iterator_;
  LeadingRows leading_rows_;
  int64_t turn_ = 0;  // of the sizes
  bool ended_ = false;
};

}  // namespace penstock::replica
