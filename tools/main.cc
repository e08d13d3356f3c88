// SPDX-License-Identifier: Apache-2.0
// The `penstock` command. Exit code 0: done; 1: failed, with one line on stderr; 2: invalid command
// line. `doctor` has its own codes, by the worst finding.
#include <CLI/CLI.hpp>

#include "tools/command_line.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  using namespace penstock::tools;  // NOLINT: this is the program of that namespace
  PrepareProcess();

  CLI::App app(
      "Penstock feeds trainers: one dispatcher, many workers.\n\n"
      "  penstock dispatcher --port 5050 --work-dir /var/lib/penstock --fault-tolerant-mode\n"
      "  penstock worker --dispatcher-address localhost:5050\n"
      "  penstock status --dispatcher-address localhost:5050",
      "penstock");
  app.require_subcommand(1);
  Chosen chosen;
  AddDispatcher(app, chosen);
  AddWorker(app, chosen);
  AddStatus(app, chosen);
  AddJobs(app, chosen);
  AddDatasets(app, chosen);
  AddAuth(app, chosen);
  AddLinks(app, chosen);
  AddTop(app, chosen);
  AddTrace(app, chosen);
  AddJournal(app, chosen);
  AddUpgrade(app, chosen);
  AddCredentials(app, chosen);
  AddDemo(app, chosen);
  AddSoak(app, chosen);
  AddBenchProgram(app, chosen);
  AddSimulate(app, chosen);
  AddDoctor(app, chosen);
  AddVersion(app, chosen);
  return RunCommandLine(app, chosen, argc, argv);
}
