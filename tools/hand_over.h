// SPDX-License-Identifier: Apache-2.0
// Subcommands that are programs of their own: in Python, where they start many processes, or like
// this command.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace penstock::tools {

struct Chosen;

// A program that lies at the same place beside the built command and beside the
// installed one.
struct Program {
  enum class Language { kPython, kOwn };  // kOwn: it takes the words as this command got them

  std::string file;                // from the command's own folder
  std::vector<std::string> needs;  // other commands, in that folder
  Language language = Language::kPython;
};

// Adds a subcommand that takes every word behind its name, --help too, to `program`.
// It replaces this process. NotFound, saying what is missing, where a part of it is not
// there.
void AddProgram(CLI::App& app, Chosen& chosen, const std::string& name,
                const std::string& description, Program program);

}  // namespace penstock::tools
