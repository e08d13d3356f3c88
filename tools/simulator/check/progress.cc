// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/check/progress.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::simulator {

void NoteStuck(World& world, std::string_view why) {
  world.Violates(absl::StrCat("stuck: ", std::string(why)));
  std::vector<std::string> waiting = world.scheduler.Waiting();
  std::stable_partition(waiting.begin(), waiting.end(),
                        [](const std::string& line) { return line.rfind("trainer", 0) == 0; });
  for (const std::string& line : waiting) {
    world.violations.push_back(absl::StrCat("waits: ", line));
  }
}

}  // namespace penstock::simulator
