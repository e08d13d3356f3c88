// SPDX-License-Identifier: Apache-2.0
// The subcommands of `penstock`: each adds itself to the parser and says what is
// to be done if it is the one given.
#pragma once

#include <functional>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace penstock::tools {

// What the command line asks for; run once it has been parsed.
struct Chosen {
  std::function<absl::Status()> run;
  int exit_code = 0;  // of the process if `run` returns OK
};

void AddDispatcher(CLI::App& app, Chosen& chosen);
void AddWorker(CLI::App& app, Chosen& chosen);
void AddStatus(CLI::App& app, Chosen& chosen);
void AddJobs(CLI::App& app, Chosen& chosen);
void AddDatasets(CLI::App& app, Chosen& chosen);
void AddLinks(CLI::App& app, Chosen& chosen);
void AddTop(CLI::App& app, Chosen& chosen);
void AddTrace(CLI::App& app, Chosen& chosen);
void AddJournal(CLI::App& app, Chosen& chosen);
void AddDemo(CLI::App& app, Chosen& chosen);
void AddSoak(CLI::App& app, Chosen& chosen);
void AddBenchProgram(CLI::App& app, Chosen& chosen);    // of penstock: hands over to penstock-bench
void AddBench(CLI::App& app, Chosen& chosen);           // of penstock-bench, and what it starts
void AddBenchCluster(CLI::App& bench, Chosen& chosen);  // below `bench`
void AddBenchRanks(CLI::App& app, Chosen& chosen);      // what it starts
void AddDoctor(CLI::App& app, Chosen& chosen);
void AddVersion(CLI::App& app, Chosen& chosen);

}  // namespace penstock::tools
