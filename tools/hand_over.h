// SPDX-License-Identifier: Apache-2.0
// Subcommands that are separate programs: Python programs that start many processes, or C++
// programs built with this command.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace penstock::tools {

struct Chosen;

// A program. Its path from the command's folder is the same in the build and in the installation.
struct Program {
  enum class Language { kPython, kOwn };  // kOwn: it gets the arguments unchanged

  std::string file;                // path from the command's folder
  std::vector<std::string> needs;  // other commands in the command's folder
  Language language = Language::kPython;
  std::vector<std::string> first;  // arguments before all others
};

// Replaces this process by the program of the subcommand `name`. Returns only if that fails:
// NotFound, naming the file, if one of its files does not exist.
absl::Status RunProgram(const std::string& name, const Program& program,
                        const std::vector<std::string>& arguments);

// Adds a subcommand that passes every argument after its name, including --help, to RunProgram().
// Returns the subcommand.
CLI::App* AddProgram(CLI::App& app, Chosen& chosen, const std::string& name,
                     const std::string& description, Program program);

}  // namespace penstock::tools
