// SPDX-License-Identifier: Apache-2.0
// Whether a client's UCX can speak with a worker's. UCX promises nothing across
// releases: some pairs fail, some hang (README.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer::ucx {

// What a worker says of itself: "v1 ucx=1.13.1 lanes=tcp incarnation=77".
std::string CompatibilityOf(std::string_view release, Lanes lanes, uint64_t incarnation);

// OK if a client with that release and these settings can speak with such a worker:
// the lanes are the same, and so are the releases in their first two numbers, or
// they are a tested pair, or any release will do. NotFound in words otherwise.
absl::Status CheckCompatibility(std::string_view worker, std::string_view release,
                                const Settings& settings);

}  // namespace penstock::transfer::ucx
