// SPDX-License-Identifier: Apache-2.0
// The one command. Exit code 0: done; 1: failed, with one line on stderr; 2: the
// command line makes no sense. `doctor` has its own: how ill the machine is.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_replace.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  using namespace penstock::tools;  // NOLINT: this is their program
  std::signal(SIGPIPE, SIG_IGN);
  // What gRPC logs stands in our own messages, without its file names.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);

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
  AddLinks(app, chosen);
  AddTop(app, chosen);
  AddTrace(app, chosen);
  AddJournal(app, chosen);
  AddDemo(app, chosen);
  AddSoak(app, chosen);
  AddBench(app, chosen);
  AddDoctor(app, chosen);
  AddVersion(app, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status status = chosen.run();
  if (status.ok()) return chosen.exit_code;
  const std::string line =
      absl::StrReplaceAll(std::string(status.message()), {{"\n", " "}, {"\r", " "}});
  std::fprintf(stderr, "penstock %s: %s (%s)\n", app.get_subcommands().front()->get_name().c_str(),
               line.c_str(), absl::StatusCodeToString(status.code()).c_str());
  return 1;
}
