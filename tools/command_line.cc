// SPDX-License-Identifier: Apache-2.0
#include "tools/command_line.h"

#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_replace.h"
#include "tools/commands.h"

namespace penstock::tools {

// Raises the soft limit of open files to the hard limit, because each link and connection takes a
// descriptor, and gRPC stops listening after an accept() that got no descriptor.
static void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void PrepareProcess() {
  RaiseDescriptorLimit();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit fails with an error
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
}

int RunCommandLine(CLI::App& app, Chosen& chosen, int argc, char** argv) {
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

}  // namespace penstock::tools
