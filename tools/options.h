// SPDX-License-Identifier: Apache-2.0
// The configuration of the servers as tables of settings (control/settings), and
// settings as flags of a command.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "control/settings/settings.h"
#include "penstock/server.h"

namespace CLI {
class App;
}

namespace penstock::tools {

std::vector<Setting> SettingsOf(DispatcherConfig& config);
std::vector<Setting> SettingsOf(WorkerConfig& config);

// Makes them options of `command`: flags, else the environment. The targets
// outlive it. What makes no sense is CLI::ParseError. Once for a command.
void AddOptions(CLI::App& command, std::vector<Setting> settings);
// And else from the command's section of the settings file, --config.
void AddServerOptions(CLI::App& command, std::vector<Setting> settings);

// --dispatcher-address and --timeout-ms of the commands that ask a dispatcher.
struct DispatcherCall {
  std::string address = "localhost:5050";
  absl::Duration timeout = absl::Seconds(10);
  TlsConfig tls;  // for "grpcs://"
};
std::vector<Setting> SettingsOf(DispatcherCall& call);

}  // namespace penstock::tools
