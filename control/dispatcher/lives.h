// SPDX-License-Identifier: Apache-2.0
// Identifies this life of the dispatcher (this start from this journal), and handles processes that
// have heard from a different life. The core's lock guards it. Its one reason to change: the rules
// by which a journal is recognized.
#pragma once

#include "control/dispatcher/shared_state.h"

namespace penstock::control {

class Lives {
 public:
  explicit Lives(const SharedState& shared) : shared_(shared) {}

  void Begin(Transaction& txn);

  // Returns the error for a process that has heard of records that are not in this journal.
  absl::Status Beyond(const Heard& heard) const;
  // Called when `heard` shows that this journal lacks records. Fails all iterations that began in
  // an earlier life, because elements that the missing records gave out would be given out again.
  // If the caller is a trainer or an operator, only in jobs that the caller may cancel.
  void EndEarlier(Transaction& txn, const Heard& heard);
  // Checks that this journal has all records of which the process has heard. If it lacks some,
  // returns an error about `job`.
  absl::Status CheckHeard(const JobRecord& job, const Heard& heard) const;
  // Checks that the client began with the `job` in this journal, and not with a different job that
  // has the same id.
  absl::Status Check(Transaction& txn, const JobRecord& job, const ClientHello& hello);

 private:
  absl::Status OlderJournal(const JobRecord& job, const Heard& heard) const;

  const SharedState& shared_;
  const CoreOptions& options_ = shared_.options;
  const State& state_ = shared_.state;
  IterationId first_iteration_;  // the lowest id of the iterations that begin in this life
};

}  // namespace penstock::control
