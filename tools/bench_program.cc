// SPDX-License-Identifier: Apache-2.0
// `penstock bench` runs another program: tools/bench_main.cc.
#include <CLI/CLI.hpp>

#include "tools/commands.h"
#include "tools/hand_over.h"

namespace penstock::tools {

void AddBenchProgram(CLI::App& app, Chosen& chosen) {
  AddProgram(app, chosen, "bench",
             "Measure the whole path in separate processes, each figure compared with a limit.",
             {.file = "penstock-bench", .language = Program::Language::kOwn});
}

}  // namespace penstock::tools
