// SPDX-License-Identifier: Apache-2.0
// Adds to the states of a job's readers the data from which another dispatcher can continue the
// job. Begins jobs from such states, which are untrusted input. In the new job, elements that were
// committed before belong to a reader that has left.
#pragma once

#include "absl/status/status.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/saved_reading.h"
#include "control/state/state.h"

namespace penstock::control {

class Transaction;

// Adds the dispatcher's data about the iteration to `saved`.
void Save(const IterationState& iteration, const protocol::IterationContext& context,
          SavedRepetition& saved);

// InvalidArgument, which names partition and repetition, in these cases: a partition claims a split
// that the dataset lacks or that another partition claims too; bookmarks are out of order; the
// number of partitions differs from the terms.
absl::Status CheckRestoration(const Restoration& restoration, const DatasetSummary& dataset,
                              const JobTerms& terms);

// Returns whether `job` began with these states.
bool BeganWith(const Restoration& restoration, const State& state, const JobRecord& job);

// Begins the iterations of the new job. REQUIRES: CheckRestoration() returned OK.
void BeginWith(Transaction& txn, const State& state, JobId job, const Restoration& restoration);

}  // namespace penstock::control
