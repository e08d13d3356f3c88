// SPDX-License-Identifier: Apache-2.0
// Settings (control/settings) as flags of a command.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "control/settings/server_settings.h"
#include "control/settings/settings.h"
#include "penstock/tls.h"

namespace CLI {
class App;
}

namespace penstock::tools {

// Adds the settings as options of `command`. Values come from flags, else from the environment. The
// targets must outlive the command. An invalid value throws CLI::ParseError. May be called once for
// a command.
void AddOptions(CLI::App& command, std::vector<Setting> settings);
// Same as AddOptions(), but values may also come from the command's section of the settings file,
// --config. `settle_more`: reads what else the command takes from this file (empty: the file of the
// environment), after the settings.
void AddServerOptions(CLI::App& command, std::vector<Setting> settings,
                      std::function<absl::Status(const std::string& path)> settle_more = {});

// --dispatcher-address and --timeout-ms of the commands that call a dispatcher.
struct DispatcherCall {
  std::string address = "localhost:5050";
  absl::Duration timeout = absl::Seconds(10);
  TlsConfig tls;  // for "grpcs://"
};
std::vector<Setting> SettingsOf(DispatcherCall& call);

}  // namespace penstock::tools
