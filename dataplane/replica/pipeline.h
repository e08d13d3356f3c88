// SPDX-License-Identifier: Apache-2.0
// One running pipeline: an iterator whose elements go to the pipeline's replicas in rotation, and
// the rows that fill incomplete batches after the iterator's end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "dataplane/memory/pool.h"
#include "dataplane/replica/input_plan.h"
#include "dataplane/replica/leading_rows.h"
#include "penstock/iterator.h"

namespace penstock::replica {

// One replica's part of a step.
struct Portion {
  Element element;      // empty: no element
  int64_t missing = 0;  // rows that the batch lacks; kUnknown: not known
  bool whole() const { return element && missing == 0; }
  std::vector<float> weights;  // {}: each row counts as 1
};

// One thread at a time, except for Stop().
class Pipeline {
 public:
  // `reading` is the dataset to iterate over; its elements are those of input.dataset, made in
  // slots of `pool` where possible (dataplane/dataset/engine/iterator_output.h). `pool` must
  // outlive the pipeline.
  static absl::StatusOr<std::unique_ptr<Pipeline>> Start(const PipelineInput& input,
                                                         const Dataset& reading,
                                                         const DistributedDataset::Plan& plan,
                                                         uint64_t seed, int64_t epoch, Pool& pool);

  // Returns the next step of the pipeline's replicas. If there is an error in place of one
  // replica's element, returns this error as the step's result; the next call continues with the
  // following step.
  absl::StatusOr<std::vector<Portion>> Next();
  // Completes incomplete portions according to partial_batches. FailedPrecondition if the number of
  // missing rows is unknown.
  absl::Status Fill(std::vector<Portion>& portions);

  absl::Status Save(StateWriter& writer);
  absl::Status Restore(StateReader& reader);
  absl::Status Commit(StateReader& reader);
  absl::Status Stop(absl::Duration bound) { return iterator_.Stop(bound); }

 private:
  // The fields that Save() writes.
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
  int64_t turn_ = 0;  // index into input_.sizes
  bool ended_ = false;
};

}  // namespace penstock::replica
