// SPDX-License-Identifier: Apache-2.0
// The settings of `ucx`, fixed for the whole process at its first use.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/transfer/ucx/fabric.h"

namespace penstock::transfer::ucx {

struct Settings {
  Lanes lanes = Lanes::kRdma;
  // Accept workers with any UCX release. Only for experiments, because some mixed releases fail,
  // and others hang until a receive's deadline (README.md).
  bool any_release = false;
};

// Parses "rdma", "any" or "tcp"; InvalidArgument otherwise.
absl::StatusOr<Lanes> ParseLanes(std::string_view name);
std::string_view NameOf(Lanes lanes);

// Replaces the settings from the environment. FailedPrecondition once `ucx` runs with
// different lanes.
absl::Status Set(const Settings& settings);
// Sets only the lanes, by name; an empty name changes nothing.
absl::Status SetLanes(std::string_view name);
// Returns the settings that were set, else those from the environment: PENSTOCK_UCX_LANES,
// PENSTOCK_UCX_ANY_RELEASE=1. InvalidArgument if the environment names unknown lanes.
absl::StatusOr<Settings> CurrentSettings();
// Returns the current settings and fixes the lanes: Set() with different lanes fails after this.
absl::StatusOr<Settings> SettleSettings();

}  // namespace penstock::transfer::ucx
