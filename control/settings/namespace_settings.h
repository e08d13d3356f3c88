// SPDX-License-Identifier: Apache-2.0
// Reads the limits of single namespaces from tables of the settings file.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "control/settings/settings.h"
#include "penstock/server.h"

namespace penstock {

// Adds the tables [namespaces.NAME] of the settings file to `config.namespaces`. A limit that a
// table leaves out is that of `config.namespace_limits`. The file and the errors are those of
// Settle().
absl::Status SettleNamespaces(DispatcherConfig& config, std::string path,
                              const Environment& environment);

}  // namespace penstock
