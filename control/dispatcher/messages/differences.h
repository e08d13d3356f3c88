// SPDX-License-Identifier: Apache-2.0
// Describes, for error messages, how two definitions differ, or how a request differs from its job.
#pragma once

#include <string>
#include <vector>

#include "control/protocol/requests.h"
#include "control/state/state.h"

namespace penstock::control {

// Returns the first node that differs, such as "node Batch#2"; "nothing" if no node differs.
std::string FirstDifference(const std::vector<NodeFingerprint>& a,
                            const std::vector<NodeFingerprint>& b);

// Returns one clause for each field in which `request`, which is for `dataset`, differs from `job`;
// empty if the request may share the job.
std::string Differences(const JobRecord& job, const GetOrCreateJobRequest& request,
                        const DatasetRecord& dataset);

}  // namespace penstock::control
