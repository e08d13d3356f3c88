// SPDX-License-Identifier: Apache-2.0
// Asks for the pages of a status and joins them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "control/protocol/dispatcher_status.h"
#include "control/protocol/requests.h"

namespace penstock::control {

struct StatusQuery {
  std::string name_space = {};         // as in StatusRequest
  std::vector<StatusPart> parts = {};  // as in StatusRequest
  std::string job = {};                // as in StatusRequest
  int64_t rows = 0;                    // the maximum number of items of each part; 0: all
};

// All parts.
inline constexpr StatusPart kStatusParts[] = {StatusPart::kWorkers,    StatusPart::kJobs,
                                              StatusPart::kPartitions, StatusPart::kLinks,
                                              StatusPart::kDatasets,   StatusPart::kWork};

// Calls `ask` for each page. With `rows`, asks for one page of each part. The dispatcher may change
// between two pages. Errors are those of `ask`. The answer's next_page_token is empty.
absl::StatusOr<DispatcherStatus> CollectStatus(
    const StatusQuery& query,
    absl::FunctionRef<absl::StatusOr<DispatcherStatus>(const StatusRequest&)> ask);

}  // namespace penstock::control
