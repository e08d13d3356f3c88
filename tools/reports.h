// SPDX-License-Identifier: Apache-2.0
// A dispatcher's status as text.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "control/protocol/session_messages.h"

namespace penstock::tools {

std::string ReportOverview(const control::DispatcherStatus& status);
std::string ReportWorkers(const control::DispatcherStatus& status);
// Those of one namespace; empty: all.
std::string ReportJobs(const control::DispatcherStatus& status, const std::string& name_space = "");
std::string ReportDatasets(const control::DispatcherStatus& status);
// Each partition of one job: where it is, how far, what it waits for.
std::string ReportPartitions(const control::JobStatus& job);

// How well each job's trainers are fed, and by how many workers they would be.
std::string ReportFeeds(const control::DispatcherStatus& status);
// Who made steps wait: each worker for whose elements a client's Next() had to wait, those
// first that were waited for most. `before`: of an earlier look, `since` ago, so that what
// came since then shows; nullptr: all since the sessions began.
std::string ReportWaits(const control::DispatcherStatus& status,
                        const control::DispatcherStatus* before, absl::Duration since);

// Each link of a client to a worker: protocol, why, how much and how fast.
std::string ReportLinks(const control::DispatcherStatus& status);
// The same as a JSON array of objects, with a line break behind it.
std::string LinksAsJson(const control::DispatcherStatus& status);

}  // namespace penstock::tools
