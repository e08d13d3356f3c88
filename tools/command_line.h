// SPDX-License-Identifier: Apache-2.0
// Initialization and command line of the programs of the `penstock` command.
#pragma once

namespace CLI {
class App;
}

namespace penstock::tools {

struct Chosen;

// Must be called before the parser is filled. Afterwards a closed pipe does not end the process,
// and gRPC logs nothing: Penstock's own messages give the same reasons without gRPC's file names.
void PrepareProcess();

// Parses the arguments and runs the chosen subcommand. If it fails, prints the reason as one line
// on stderr. Returns the exit code: 0 done; 1 failed; 2 invalid command line; or the subcommand's
// own code.
int RunCommandLine(CLI::App& app, Chosen& chosen, int argc, char** argv);

}  // namespace penstock::tools
