// SPDX-License-Identifier: Apache-2.0
// Decides whether a client's UCX can work with a worker's. UCX promises nothing across releases:
// some pairs fail, some hang (README.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "dataplane/transfer/ucx/settings.h"

namespace penstock::transfer::ucx {

// Describes a worker: "v1 ucx=1.13.1 lanes=tcp incarnation=77".
std::string CompatibilityOf(std::string_view release, Lanes lanes, uint64_t incarnation);

// OK if a client with that release and these settings can work with such a worker: the lanes are
// the same, and the first two numbers of the releases are the same, or the two are a tested pair,
// or settings.any_release is set. NotFound with the reason otherwise.
absl::Status CheckCompatibility(std::string_view worker, std::string_view release,
                                const Settings& settings);

}  // namespace penstock::transfer::ucx
