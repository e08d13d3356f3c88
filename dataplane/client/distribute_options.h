// SPDX-License-Identifier: Apache-2.0
// Checks DistributeOptions, and converts them to and from attributes of the node Distribute.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "control/protocol/job_terms.h"
#include "dataplane/dataset/expr/attr.h"
#include "dataplane/dataset/graph/registry.h"
#include "penstock/distribute.h"

namespace penstock::client {

// InvalidArgument names the option and its valid values.
absl::Status Check(const DistributeOptions& options);

// Returns the options with consumers counted as the protocol does: each member of a group is one.
DistributeOptions OfMember(DistributeOptions options);

// Returns the terms that all readers of a job agree on. REQUIRES: options OfMember().
control::JobTerms TermsOf(const DistributeOptions& options);

Attrs ToAttrs(const DistributeOptions& options);
// REQUIRES: attributes that DistributeRules() admits.
DistributeOptions FromAttrs(const Attrs& attrs);
std::vector<AttrRule> DistributeRules();

}  // namespace penstock::client
