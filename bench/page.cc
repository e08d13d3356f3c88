// SPDX-License-Identifier: Apache-2.0
#include "bench/page.h"

#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "bench/process.h"
#include "bench/scratch.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

// Path from this program's folder, in the build and in every installation.
constexpr char kProgram[] = "../share/penstock/bench/page.py";

}  // namespace

absl::StatusOr<PageMaker> PageMaker::Find(const std::string& gpu_figures) {
  std::error_code error;
  const std::filesystem::path bin =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path program = (bin / kProgram).lexically_normal();
  std::string why;
  if (!std::filesystem::exists(program, error)) why = program.string() + " does not exist";
  // Debian's packages are for its own Python, which need not be the first one on PATH.
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    std::vector<std::string> words = {python, program.string()};
    if (!gpu_figures.empty()) words.insert(words.end(), {"--gpu-figures", gpu_figures});
    std::vector<std::string> check = words;
    check.emplace_back("--check");
    const absl::Status able = Run(std::move(check), "").status();
    if (able.ok()) return PageMaker(std::move(words));
    if (why.empty()) why = std::string(able.message());
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no page can be made here: ", why,
                   ". With the records of --json, another machine can make it: ",
                   "penstock bench page RECORDS PAGE"));
}

absl::StatusOr<std::string> PageMaker::Make(const std::string& records) const {
  absl::StatusOr<std::string> page = Run(words_, records);
  RETURN_IF_ERROR(Annotate(page.status(), "cannot make the page"));
  return page;
}

absl::StatusOr<std::string> PageMaker::Run(std::vector<std::string> words,
                                           const std::string& input) {
  ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Make());
  ASSIGN_OR_RETURN(const std::unique_ptr<Process> process,
                   Process::Start(std::move(words), Process::Ends::kWithInput,
                                  absl::StrCat(scratch.path(), "/log")));
  process->Write(input).IgnoreError();  // Finish() has the reason
  return process->Finish();
}

}  // namespace penstock::bench
