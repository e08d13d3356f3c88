// SPDX-License-Identifier: Apache-2.0
// The last release that did not number the formats of journals (control/state/format.h), as a
// reader of today's records and snapshots.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace penstock::control::first_format {

// Returns FailedPrecondition, with the field, if that release would refuse the record because it
// does not know a field.
absl::Status Read(std::string_view record);

// The same for the pieces of a snapshot, as that release stores them. DataLoss if two pieces have
// the same iteration: that release does not join them.
absl::Status ReadSnapshot(const std::vector<std::string>& pieces);

}  // namespace penstock::control::first_format
