// SPDX-License-Identifier: Apache-2.0
// The subcommands of `penstock`. Each function adds one to the parser. The parser stores the action
// of the given subcommand in `chosen`.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace penstock::tools {

// The subcommand that the command line chose; run after parsing.
struct Chosen {
  std::function<absl::Status()> run;
  int exit_code = 0;  // exit code of the process if `run` returns OK
};

void AddDispatcher(CLI::App& app, Chosen& chosen);
void AddWorker(CLI::App& app, Chosen& chosen);
void AddStatus(CLI::App& app, Chosen& chosen);
void AddJobs(CLI::App& app, Chosen& chosen);
void AddDatasets(CLI::App& app, Chosen& chosen);
void AddAuth(CLI::App& app, Chosen& chosen);
void AddLinks(CLI::App& app, Chosen& chosen);
void AddTop(CLI::App& app, Chosen& chosen);
void AddTrace(CLI::App& app, Chosen& chosen);
void AddJournal(CLI::App& app, Chosen& chosen);
void AddUpgrade(CLI::App& app, Chosen& chosen);
void AddCredentials(CLI::App& app, Chosen& chosen);
void AddDemo(CLI::App& app, Chosen& chosen);
void AddSoak(CLI::App& app, Chosen& chosen);
void AddBenchProgram(CLI::App& app, Chosen& chosen);    // in penstock: runs penstock-bench
void AddBench(CLI::App& app, Chosen& chosen);           // in penstock-bench, with its processes
void AddBenchCluster(CLI::App& bench, Chosen& chosen);  // a subcommand of `bench`
void AddBenchFleet(CLI::App& bench, Chosen& chosen);    // a subcommand of `bench`
void AddBenchFleetLoad(CLI::App& app, Chosen& chosen);  // the process that it starts
void AddBenchRanks(CLI::App& app, Chosen& chosen);      // the processes that it starts
void AddSimulate(CLI::App& app, Chosen& chosen);        // in penstock: runs penstock-simulate
void AddDoctor(CLI::App& app, Chosen& chosen);
void AddVersion(CLI::App& app, Chosen& chosen);

}  // namespace penstock::tools
