// SPDX-License-Identifier: Apache-2.0
// Checks DistributeOptions, and converts them to and from attributes of the Distribute node.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/protocol/job_terms.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/graph/registry.h"
#include "penstock/distribute.h"

namespace penstock::client {

// Returns InvalidArgument naming an invalid option and its valid values. Ignores moved fields.
absl::Status Check(const DistributeOptions& options);

// Returns the terms that all readers of a job agree on.
control::JobTerms TermsOf(const DistributeOptions& options);

Attrs ToAttrs(const DistributeOptions& options);
// Returns InvalidArgument if attributes exclude each other. If this succeeds, values may still be
// invalid; Check() finds these. REQUIRES: the attributes satisfy DistributeRules().
absl::StatusOr<DistributeOptions> FromAttrs(const Attrs& attrs);
std::vector<AttrRule> DistributeRules();

}  // namespace penstock::client
