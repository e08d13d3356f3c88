// SPDX-License-Identifier: Apache-2.0
// What `ucx` is told: once for the whole process, before its first use.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

struct Settings {
  Lanes lanes = Lanes::kRdma;
  // Speak to workers of any UCX release. For those who try: mixed releases fail,
  // and some hang until a receive's deadline (README.md).
  bool any_release = false;
};

// "rdma", "any" or "tcp"; InvalidArgument otherwise.
absl::StatusOr<Lanes> ParseLanes(std::string_view name);
std::string_view NameOf(Lanes lanes);

// From now on, in place of what the environment says. FailedPrecondition once
// `ucx` runs with other lanes.
absl::Status Set(const Settings& settings);
// The same for the lanes of that name alone; nothing for an empty one.
absl::Status SetLanes(std::string_view name);
// As set, else by the environment: PENSTOCK_UCX_LANES, PENSTOCK_UCX_ANY_RELEASE=1.
// InvalidArgument if that names no lanes.
absl::StatusOr<Settings> CurrentSettings();
// The same, and they stay: Set() with other lanes fails from here on.
absl::StatusOr<Settings> SettleSettings();

}  // namespace penstock::transfer::ucx
