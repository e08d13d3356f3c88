// SPDX-License-Identifier: Apache-2.0
// A dispatcher's status as text.
#pragma once

#include <string>

#include "control/protocol/session_messages.h"

namespace penstock::tools {

std::string ReportOverview(const control::DispatcherStatus& status);
std::string ReportWorkers(const control::DispatcherStatus& status);
// Those of one namespace; empty: all.
std::string ReportJobs(const control::DispatcherStatus& status, const std::string& name_space = "");
std::string ReportDatasets(const control::DispatcherStatus& status);
// Each partition of one job: where it is, how far, what it waits for.
std::string ReportPartitions(const control::JobStatus& job);

// Each link of a client to a worker: protocol, why, how much and how fast.
std::string ReportLinks(const control::DispatcherStatus& status);
// The same as a JSON array of objects, with a line break behind it.
std::string LinksAsJson(const control::DispatcherStatus& status);

}  // namespace penstock::tools
