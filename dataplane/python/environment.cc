// SPDX-License-Identifier: Apache-2.0
#include "dataplane/python/environment.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace penstock::python_host {
namespace {

constexpr std::array<std::string_view, 15> kNames = {
    "PATH",        "HOME",         "USER", "LOGNAME",  "SHELL",
    "TMPDIR",      "TZ",           "LANG", "LANGUAGE", "PYTHONPATH",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PWD",  "TERM",     "CUDA_VISIBLE_DEVICES"};
// The interpreter, the locale, the dynamic loader, the libraries of threads that NumPy uses, and
// the sanitizers of tests.
constexpr std::array<std::string_view, 9> kPrefixes = {
    "PYTHON", "LC_", "LD_", "OMP_", "MKL_", "OPENBLAS_", "ASAN_", "UBSAN_", "TSAN_"};

bool IsNeeded(std::string_view name) {
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<std::string> SelectEnvironment(
    const char* const* environment, const std::optional<std::vector<std::string>>& additional) {
  std::vector<std::string> selected;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable = *environment;
    const std::string_view name = variable.substr(0, variable.find('='));
    if (!additional.has_value() || IsNeeded(name) ||
        std::find(additional->begin(), additional->end(), name) != additional->end()) {
      selected.emplace_back(variable);
    }
  }
  return selected;
}

absl::Status CheckVariableNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.empty() && name.find('=') == std::string::npos) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("python_env contains '", name,
                     "', which is not the name of an environment variable; a value is not given "
                     "here, it comes from the worker's own environment"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::python_host
