// SPDX-License-Identifier: Apache-2.0
#include "tools/hand_over.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/commands.h"

namespace penstock::tools {
namespace {

absl::Status CheckThere(const std::string& name, const std::filesystem::path& part) {
  std::error_code error;
  if (std::filesystem::exists(part, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "the ", name, " needs ", part.string(),
      ", which does not exist; build all of Penstock, or install it with cmake --install"));
}

}  // namespace

absl::Status RunProgram(const std::string& name, const Program& program,
                        const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("cannot find the path of this program: ", error.message()));
  }
  const std::filesystem::path bin = self.parent_path();
  const std::filesystem::path file = (bin / program.file).lexically_normal();
  if (absl::Status there = CheckThere(name, file); !there.ok()) return there;
  for (const std::string& need : program.needs) {
    if (absl::Status there = CheckThere(name, bin / need); !there.ok()) return there;
  }
  const bool python = program.language == Program::Language::kPython;
  std::vector<std::string> words = {"penstock", name};
  if (python) words = {"python3", file.string(), "--bin", bin.string()};
  words.insert(words.end(), program.first.begin(), program.first.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(python ? argv[0] : file.c_str(), argv.data());
  return absl::ErrnoToStatus(
      errno, python ? absl::StrCat("the ", name, " needs Python: cannot run ", argv[0])
                    : absl::StrCat("cannot run ", file.string()));
}

CLI::App* AddProgram(CLI::App& app, Chosen& chosen, const std::string& name,
                     const std::string& description, Program program) {
  CLI::App* command = app.add_subcommand(name, description);
  command->set_help_flag();  // the program gets all arguments after its name, even --help
  command->prefix_command();
  command->callback([command, &chosen, name, program = std::move(program)] {
    chosen.run = [name, program, rest = command->remaining()] {
      return RunProgram(name, program, rest);
    };
  });
  return command;
}

}  // namespace penstock::tools
