// SPDX-License-Identifier: Apache-2.0
// Findings as text for people and as JSON for programs.
#pragma once

#include <string>
#include <vector>

#include "dataplane/transfer/verbs/devices.h"
#include "tools/doctor/finding.h"

namespace penstock::doctor {

// Returns the problems as paragraphs of at most 100 columns, then the findings that are in order.
// The last line gives the counts.
std::string ReportText(const std::vector<Finding>& findings);

// Returns one JSON object on one line (docs/doctor.md): the findings, the exit code, and the RDMA
// devices as numbers.
std::string ReportJson(const std::vector<Finding>& findings,
                       const std::vector<transfer::verbs::Device>& devices);

}  // namespace penstock::doctor
