// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "control/env/launchers.h"

namespace penstock::simulator {
namespace {

std::set<std::string> NamesOfLaunchers() {
  std::set<std::string> names = {"MASTER_ADDR", "MASTER_PORT"};
  for (const Launcher& launcher : kLaunchers) {
    for (const char* name :
         {launcher.rank, launcher.world, launcher.local_world, launcher.launch}) {
      if (name != nullptr) names.insert(name);
    }
  }
  return names;
}

}  // namespace

void ForgetEnvironment() {
  const std::set<std::string> launchers = NamesOfLaunchers();
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('='));
    const bool is_setting = absl::StartsWith(name, "PENSTOCK_") || absl::StartsWith(name, "UCX_");
    if ((is_setting || launchers.contains(name)) && name != "PENSTOCK_EVENTS") {
      names.push_back(name);
    }
  }
  for (const std::string& name : names) unsetenv(name.c_str());
  setenv("PENSTOCK_EVENTS", "off", /*overwrite=*/0);
}

}  // namespace penstock::simulator
