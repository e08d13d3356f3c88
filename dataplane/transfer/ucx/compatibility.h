// SPDX-License-Identifier: Apache-2.0
// Decides whether a client's UCX can work with a worker's. UCX does not promise that different
// releases work together: some pairs fail, others hang (README.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer::ucx {

// Describes a worker: "v1 ucx=1.13.1 lanes=tcp incarnation=77".
std::string CompatibilityOf(std::string_view release, Lanes lanes, uint64_t incarnation);

// Returns OK if a client with `release` and `settings` can work with `worker`, else NotFound with
// the reason. Client and worker must use the same lanes. In addition, one of these must hold: the
// first two numbers of the two releases are equal; the releases are a tested pair;
// settings.any_release is set.
absl::Status CheckCompatibility(std::string_view worker, std::string_view release,
                                const Settings& settings);

}  // namespace penstock::transfer::ucx
