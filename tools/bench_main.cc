// SPDX-License-Identifier: Apache-2.0
// penstock-bench: `penstock bench` and the processes that it starts, including workers that have
// the functions of its datasets. The `penstock` command is built without this code.
#include <CLI/CLI.hpp>

#include "tools/command_line.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  using namespace penstock::tools;  // NOLINT: this is the program of that namespace
  PrepareProcess();
  CLI::App app("The program of `penstock bench`.", "penstock");
  app.require_subcommand(1);
  Chosen chosen;
  AddBench(app, chosen);
  AddDispatcher(app, chosen);
  AddWorker(app, chosen);
  return RunCommandLine(app, chosen, argc, argv);
}
