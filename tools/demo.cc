// SPDX-License-Identifier: Apache-2.0
// Hands over to the demo's own program, examples/digits/demo.py, which lies at
// the same place beside the built command and beside the installed one.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/commands.h"

namespace penstock::tools {
namespace {

constexpr char kFromBin[] = "../share/penstock/examples/digits/demo.py";

absl::Status CheckThere(const std::filesystem::path& part) {
  std::error_code error;
  if (std::filesystem::exists(part, error)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "the demo needs ", part.string(),
      ", which is not there; build all of Penstock, or install it with cmake --install"));
}

// Replaces this process; returns only if that fails.
absl::Status Run(const std::vector<std::string>& arguments) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::NotFoundError(
        absl::StrCat("cannot tell where this program lies: ", error.message()));
  }
  const std::filesystem::path bin = self.parent_path();
  const std::filesystem::path script = (bin / kFromBin).lexically_normal();
  for (const std::filesystem::path& part :
       {script, bin / "digits_make_shards", bin / "digits_trainer", bin / "digits_evaluate"}) {
    if (absl::Status there = CheckThere(part); !there.ok()) return there;
  }
  std::vector<std::string> words = {"python3", script.string(), "--bin", bin.string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  return absl::ErrnoToStatus(errno, absl::StrCat("the demo needs Python: cannot run ", argv[0]));
}

}  // namespace

void AddDemo(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("demo", "Train on handwritten digits here while a process is killed -9.");
  command->set_help_flag();  // --help, like everything behind the word, is for the program
  command->prefix_command();
  command->callback(
      [command, &chosen] { chosen.run = [rest = command->remaining()] { return Run(rest); }; });
}

}  // namespace penstock::tools
