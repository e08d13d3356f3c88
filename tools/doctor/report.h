// SPDX-License-Identifier: Apache-2.0
// Findings for people and for machines.
#pragma once

#include <string>
#include <vector>

#include "dataplane/transfer/verbs/devices.h"
#include "tools/doctor/finding.h"

namespace penstock::doctor {

// What is amiss in paragraphs of at most 100 columns, then what is well; the last
// line counts.
std::string ReportText(const std::vector<Finding>& findings);

// One JSON object on one line (docs/doctor.md): the findings, the exit code, and
// the RDMA devices as numbers.
std::string ReportJson(const std::vector<Finding>& findings,
                       const std::vector<transfer::verbs::Device>& devices);

}  // namespace penstock::doctor
