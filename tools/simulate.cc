// SPDX-License-Identifier: Apache-2.0
// `penstock simulate` runs another program: tools/simulator/main.cc.
#include <CLI/CLI.hpp>

#include "tools/commands.h"
#include "tools/hand_over.h"

namespace penstock::tools {

void AddSimulate(CLI::App& app, Chosen& chosen) {
  AddProgram(app, chosen, "simulate",
             "Run the whole service under a simulated time, network and disk, with faults from a "
             "seed.",
             {.file = "penstock-simulate", .language = Program::Language::kOwn});
}

}  // namespace penstock::tools
