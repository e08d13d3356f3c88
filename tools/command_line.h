// SPDX-License-Identifier: Apache-2.0
// What all programs of the command do with their words.
#pragma once

namespace CLI {
class App;
}

namespace penstock::tools {

struct Chosen;

// Before the parser is filled: a closed pipe ends nobody, and gRPC logs nothing, since what it has
// to say stands in our own messages, without its file names.
void PrepareProcess();

// Parses the words and runs what they ask for; says what failed in one line on stderr. Returns the
// exit code: 0 done, 1 failed, 2 a command line that makes no sense, or that of the subcommand.
int RunCommandLine(CLI::App& app, Chosen& chosen, int argc, char** argv);

}  // namespace penstock::tools
