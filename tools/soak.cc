// SPDX-License-Identifier: Apache-2.0
// `penstock soak` runs tools/soak/soak.py.
#include "tools/commands.h"
#include "tools/hand_over.h"

namespace penstock::tools {

void AddSoak(CLI::App& app, Chosen& chosen) {
  AddProgram(
      app, chosen, "soak",
      "Read jobs of every kind on this machine while processes die, and count every element.",
      {.file = "../share/penstock/soak/soak.py", .needs = {"soak_trainer"}});
}

}  // namespace penstock::tools
