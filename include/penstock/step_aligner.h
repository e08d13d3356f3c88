// SPDX-License-Identifier: Apache-2.0
// Gives all processes of a group the same number of steps, no matter how much data each process
// has. DistributedIterator does this itself. This class is for loops that read in a different way:
//
//   PENSTOCK_ASSIGN_OR_RETURN(ps::StepAligner aligner, ps::StepAligner::Make(group, {…}));
//   PENSTOCK_ASSIGN_OR_RETURN(std::optional<Batch> next, Read());
//   PENSTOCK_RETURN_IF_ERROR(aligner.Start(next.has_value()));
//   while (true) {
//     PENSTOCK_ASSIGN_OR_RETURN(bool goes_on, aligner.Finish());
//     if (!goes_on) break;
//     Batch batch = next ? *next : Filler();  // as the policy says
//     PENSTOCK_ASSIGN_OR_RETURN(next, Read());         // one step ahead: messages travel
//     PENSTOCK_RETURN_IF_ERROR(aligner.Start(next.has_value()));  // while the ranks
//     Step(batch);                            // compute
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
#include "penstock/moved_field.h"
#include "penstock/replica.h"

#pragma GCC visibility push(default)
namespace penstock {

struct StepAlignerOptions {
  // When the steps end. kDrop: when the first process has no data. kEmpty, kPad and kRepeat: when
  // no process has data. kError: when no process has data, or with an error in all processes when
  // only some have data.
  PartialBatches partial_batches = PartialBatches::kEmpty;
  int64_t first_step = 0;
  // (name, value) pairs that must be equal in all processes: the dataset's fingerprint, the job,
  // the number of consumers. The policy and first_step are added.
  std::vector<std::pair<std::string, std::string>> must_match;
  // The name of must_match before 0.9. Release 0.10 removes it.
  MovedField<std::vector<std::pair<std::string, std::string>>> alike;
};

// One process's part in agreeing on steps. It has its own communicator, split off from the group's.
// One thread at a time may call its methods, except the ones marked "Any thread". This thread must
// not belong to a transport or a reader, because other threads wait for such threads. Destroying
// the aligner before the end has the effect of Abort().
class StepAligner {
 public:
  // All processes of the group must call this, and make all their aligners in the same order.
  // FailedPrecondition if the group is not connected, or if a value that must match differs; in
  // that case the message names the processes. A group of one process needs no connection.
  static absl::StatusOr<StepAligner> Make(const ReplicaGroup& group, StepAlignerOptions options);
  StepAligner(StepAligner&& other) noexcept;
  StepAligner& operator=(StepAligner&& other) noexcept;
  ~StepAligner();

  // Announces whether this process has data for the next step, and returns at once. The caller may
  // start any number of steps ahead.
  absl::Status Start(bool has_data);
  // Waits until all processes have started the oldest step that this process has started, finishes
  // it, and returns whether all processes make it. After the first false, every call returns false.
  // OutOfRange under kError if only some processes have data. Unavailable, which names the process,
  // if a process is gone. If a process called Abort(), the error given there is returned.
  // FailedPrecondition if no step was started.
  absl::StatusOr<bool> Finish();
  absl::StatusOr<bool> Align(bool has_data) {
    PENSTOCK_RETURN_IF_ERROR(Start(has_data));
    return Finish();
  }

  // The step that the next Finish() finishes.
  int64_t step() const { return step_; }
  // Returns the error that ended the steps for all processes; OK if no error is known yet. Never
  // waits. Any thread.
  absl::Status AsyncError() const;
  // Ends the steps for all processes, which get `why` as their error. Any thread.
  void Abort(const absl::Status& why);

 private:
  StepAligner(std::unique_ptr<replica::Collective> own, const StepAlignerOptions& options);

  std::unique_ptr<replica::Collective> own_;  // nullptr: one process
  std::deque<bool> alone_;                    // of one process: the started steps
  PartialBatches policy_;
  int64_t step_;
  bool over_ = false;
};

namespace replica_internal {

// Checks that all processes of a connected group have the same (name, value) pairs. OK for a group
// that is not connected. FailedPrecondition, with each value that differs and its processes.
absl::Status CheckAlike(const ReplicaGroup& group,
                        const std::vector<std::pair<std::string, std::string>>& values);

}  // namespace replica_internal
}  // namespace penstock
#pragma GCC visibility pop
