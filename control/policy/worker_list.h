// SPDX-License-Identifier: Apache-2.0
// The list of workers that a dispatcher was configured with (worker_addresses): a
// worker's place in it is the number of the shard that it reads. Pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock::control {

// Entries are "host", "host:port" or "host:%port%" (any port, under any name
// between the signs); IPv6 hosts stand in brackets, a scheme belongs to the host.
// A host may stand there several times. InvalidArgument for an empty entry.
absl::Status CheckWorkerAddresses(absl::Span<const std::string> list);

// The place of a worker at `address`: of the entry with that very address, else
// of the first entry of its host for any port that is not among `taken`.
// FailedPrecondition with the list if there is none.
absl::StatusOr<int64_t> PlaceInList(absl::Span<const std::string> list, const std::string& address,
                                    const std::set<int64_t>& taken);

}  // namespace penstock::control
