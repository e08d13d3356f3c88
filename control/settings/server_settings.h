// SPDX-License-Identifier: Apache-2.0
// The configs of the servers as tables of settings. A row gives a field's flag, its environment
// variable, its key in a file, its keyword in Python, and its help.
#pragma once

#include <vector>

#include "control/settings/settings.h"
#include "penstock/server.h"

#pragma GCC visibility push(default)
namespace penstock {

inline constexpr char kDispatcherAddressHelp[] =
    "Address of the dispatcher: [grpc://]host:port or grpcs://host:port.";

// Return the rows of the table. The rows write to `config`, which must outlive them.
std::vector<Setting> SettingsOf(DispatcherConfig& config);
std::vector<Setting> SettingsOf(WorkerConfig& config);

}  // namespace penstock
#pragma GCC visibility pop
