// SPDX-License-Identifier: Apache-2.0
// The list of workers in a dispatcher's configuration (worker_addresses). A worker's place in the
// list is the number of the shard that the worker reads. Pure functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock::control {

// Checks the entries: "host", "host:port" or "host:%port%" (any port, with any name between the
// percent signs). IPv6 hosts are in brackets; a scheme belongs to the host. A host may occur
// several times. Returns InvalidArgument for an empty entry.
absl::Status CheckWorkerAddresses(absl::Span<const std::string> list);

// Returns the place of a worker at `address`: the place of the entry with exactly this address, or
// else the first place, not in `taken`, of an entry for any port of the address's host. If there is
// no such place, FailedPrecondition, with the list.
absl::StatusOr<int64_t> PlaceInList(absl::Span<const std::string> list, const std::string& address,
                                    const std::set<int64_t>& taken);

}  // namespace penstock::control
