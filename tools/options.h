// SPDX-License-Identifier: Apache-2.0
// The configuration of the servers as one table: from it come flags, environment
// variables, entries of a configuration file, and the help.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "penstock/server.h"

namespace CLI {
class App;
}

namespace penstock::tools {

// One field of a config struct. `name` is its flag ("--client-timeout-ms"), its
// key in a configuration file, and, in capitals behind PENSTOCK_ and the
// command, its environment variable: PENSTOCK_DISPATCHER_CLIENT_TIMEOUT_MS.
struct Option {
  using Target =
      std::variant<std::string*, int*, int64_t*, bool*, absl::Duration*, std::vector<std::string>*>;
  const char* name;
  Target target;  // holds the default; a Duration is given in milliseconds
  const char* help;
};

std::vector<Option> OptionsOf(DispatcherConfig& config);
std::vector<Option> OptionsOf(WorkerConfig& config);

// PENSTOCK_<COMMAND>_<NAME>.
std::string EnvironmentName(const std::string& command, const std::string& name);
// Makes them options of `command`; the targets outlive it.
void AddOptions(CLI::App& command, const std::vector<Option>& options);

// --dispatcher-address and --timeout-ms of the commands that ask a dispatcher.
struct DispatcherCall {
  std::string address = "localhost:5050";
  absl::Duration timeout = absl::Seconds(10);
};
std::vector<Option> OptionsOf(DispatcherCall& call);

}  // namespace penstock::tools
