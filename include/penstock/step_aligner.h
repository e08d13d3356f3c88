// SPDX-License-Identifier: Apache-2.0
// The same number of steps for all processes of a group, whatever data each has.
// DistributedIterator does this by itself; here it is for loops that read otherwise:
//
//   ASSIGN_OR_RETURN(ps::StepAligner aligner, ps::StepAligner::Make(group, {…}));
//   ASSIGN_OR_RETURN(std::optional<Batch> next, Read());
//   RETURN_IF_ERROR(aligner.Start(next.has_value()));
//   while (true) {
//     ASSIGN_OR_RETURN(bool goes_on, aligner.Finish());
//     if (!goes_on) break;
//     Batch batch = next ? *next : Filler();  // by the policy
//     ASSIGN_OR_RETURN(next, Read());         // one step ahead, so that what the
//     RETURN_IF_ERROR(aligner.Start(next.has_value()));  // ranks say travels
//     Step(batch);                            // while they compute
//   }
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/distributed_dataset.h"
#include "penstock/replica.h"

namespace penstock {

struct StepAlignerOptions {
  // When the steps end: kDrop with the first process that has no data; kEmpty, kPad
  // and kRepeat with the last; kError with an error of all where some have none.
  PartialBatches partial_batches = PartialBatches::kEmpty;
  int64_t first_step = 0;
  // What must be alike in all processes, as (name, value): the dataset's fingerprint,
  // the job, the number of consumers. The policy and first_step are added.
  std::vector<std::pair<std::string, std::string>> alike;
};

// On a communicator of its own, split off the group's. One thread at a time, and
// never one that others wait for. Destroying it before the end is an Abort().
class StepAligner {
 public:
  // All processes of the group make theirs, in the same order as other aligners.
  // FailedPrecondition if the group is not connected, or naming the processes that
  // differ in what must be alike. A group of one process is aligned with itself.
  static absl::StatusOr<StepAligner> Make(const ReplicaGroup& group, StepAlignerOptions options);
  StepAligner(StepAligner&& other) noexcept;
  StepAligner& operator=(StepAligner&& other) noexcept;
  ~StepAligner();

  // Says whether this process has data for the next step, and returns at once. As many
  // steps may be started ahead as the caller likes.
  absl::Status Start(bool has_data);
  // Whether all make the oldest step that was started and not finished; false ever
  // after the first that they do not. Waits until all have started it. OutOfRange by
  // kError; Unavailable naming the process that is gone, or what it aborted with;
  // FailedPrecondition if none was started.
  absl::StatusOr<bool> Finish();
  absl::StatusOr<bool> Align(bool has_data) {
    PENSTOCK_RETURN_IF_ERROR(Start(has_data));
    return Finish();
  }

  // The next step to be finished.
  int64_t step() const { return step_; }
  // What ended it for all, as far as is known; never waits. Any thread.
  absl::Status AsyncError() const;
  // Ends it for all processes, which hear `why`. Any thread.
  void Abort(const absl::Status& why);

 private:
  StepAligner(std::unique_ptr<replica::Collective> own, const StepAlignerOptions& options);

  std::unique_ptr<replica::Collective> own_;  // nullptr: one process
  std::deque<bool> alone_;                    // what it started
  PartialBatches policy_;
  int64_t step_;
  bool over_ = false;
};

namespace replica_internal {

// Whether all processes of a connected group say the same of (name, value).
// FailedPrecondition tells each value that differs with the processes that have it.
absl::Status CheckAlike(const ReplicaGroup& group,
                        const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace replica_internal
}  // namespace penstock
