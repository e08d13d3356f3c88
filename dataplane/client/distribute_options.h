// SPDX-License-Identifier: Apache-2.0
// DistributeOptions, checked, and as attributes of the node Distribute.
#pragma once

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "control/protocol/job_terms.h"
#include "dataplane/dataset/attr.h"
#include "dataplane/dataset/registry.h"
#include "penstock/distribute.h"

namespace penstock::client {

// InvalidArgument names the option and what it may be.
absl::Status Check(const DistributeOptions& options);

// As the protocol counts: where consumers are groups, each member is one.
DistributeOptions OfMember(DistributeOptions options);

// What its readers agree on. REQUIRES: options OfMember().
control::JobTerms TermsOf(const DistributeOptions& options);

Attrs ToAttrs(const DistributeOptions& options);
// REQUIRES: attributes that the rules below admit.
DistributeOptions FromAttrs(const Attrs& attrs);
std::vector<AttrRule> DistributeRules();

}  // namespace penstock::client
