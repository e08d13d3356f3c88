// SPDX-License-Identifier: Apache-2.0
// A dispatcher's status as text.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "control/protocol/dispatcher_status.h"

namespace penstock::tools {

// The number of rows of a table that commands show without --all.
inline constexpr int64_t kRowsShown = 100;
inline constexpr char kAllRowsHelp[] = "Show all rows of each table; the default is the first 100.";

// A table that does not show everything ends with a line such as "150 more: use --all".
std::string ReportOverview(const control::DispatcherStatus& status);
std::string ReportWorkers(const control::DispatcherStatus& status);
std::string ReportJobs(const control::DispatcherStatus& status);
std::string ReportDatasets(const control::DispatcherStatus& status);
// Each partition of one job: its worker, its progress and what it waits for.
std::string ReportPartitions(const control::JobStatus& job);

// How well each job's trainers are fed, and how many workers would feed them.
std::string ReportFeeds(const control::DispatcherStatus& status);
// The workers that made steps wait, with one row for each worker for whose elements a client's
// Next() had to wait. The longest wait for reception comes first. `before`: a status from `since`
// ago, so that only later waits are shown; nullptr: all waits since the sessions began.
std::string ReportWaits(const control::DispatcherStatus& status,
                        const control::DispatcherStatus* before, absl::Duration since);

// Each link of a client to a worker: the protocol and its reason, counts and rates.
std::string ReportLinks(const control::DispatcherStatus& status);
// The same links as a JSON array of objects, with a line break at the end.
std::string LinksAsJson(const control::DispatcherStatus& status);

}  // namespace penstock::tools
