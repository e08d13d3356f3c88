// SPDX-License-Identifier: Apache-2.0
// Checks whether a job can begin with the states of a restore, which come from outside.
#pragma once

#include "absl/status/status.h"
#include "control/protocol/saved_reading.h"
#include "control/state/state.h"

namespace penstock::control {

// InvalidArgument names partition and repetition: for splits that the dataset does not have or that
// two partitions claim, for bookmarks out of order, and for another number of partitions than in
// the terms.
absl::Status CheckRestoration(const Restoration& restoration, const DatasetSummary& dataset,
                              const JobTerms& terms);

// Returns whether `job` began with these states.
bool BeganWith(const Restoration& restoration, const State& state, const JobRecord& job);

}  // namespace penstock::control
