// SPDX-License-Identifier: Apache-2.0
// Whether a job can begin with what a restore brought: it comes from outside.
#pragma once

#include "absl/status/status.h"
#include "control/protocol/saved_reading.h"
#include "control/state/state.h"

namespace penstock::control {

// InvalidArgument naming partition and repetition: splits that the dataset does
// not have or that two partitions claim, bookmarks out of order, another number of
// partitions than the terms name.
absl::Status CheckRestoration(const Restoration& restoration, const DatasetSummary& dataset,
                              const JobTerms& terms);

// Whether that is what `job` began with.
bool BeganWith(const Restoration& restoration, const State& state, const JobRecord& job);

}  // namespace penstock::control
