// SPDX-License-Identifier: Apache-2.0
// The list of workers that a dispatcher was configured with (worker_addresses). A worker's place in
// it is the number of the shard that it reads. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock::control {

// Checks the entries: "host", "host:port" or "host:%port%" (any port, with any name between the
// signs). IPv6 hosts are in brackets; a scheme belongs to the host. A host may occur several times.
// Returns InvalidArgument for an empty entry.
absl::Status CheckWorkerAddresses(absl::Span<const std::string> list);

// Returns the place of a worker at `address`: that of the entry with exactly this address, else
// that of the first entry for any port of its host that is not in `taken`. FailedPrecondition with
// the list if there is none.
absl::StatusOr<int64_t> PlaceInList(absl::Span<const std::string> list, const std::string& address,
                                    const std::set<int64_t>& taken);

}  // namespace penstock::control
