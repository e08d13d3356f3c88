// SPDX-License-Identifier: Apache-2.0
// The variables that a worker's Python processes get. Such a process runs code that comes with
// datasets, and the worker's environment may contain credentials (AWS_SECRET_ACCESS_KEY,
// PENSTOCK_METRICS_TOKEN). So only named variables are passed on. This keeps credentials out of
// libraries, logs and child processes. It is no barrier: code of the worker's user can read the
// worker's own environment in /proc. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace penstock::python_host {

// Returns the "name=value" strings of `environment` (which ends with null, like environ) that a
// Python process gets: all that it needs to run at all (PATH, HOME, PYTHON*, LANG, LC_*, the
// loader's LD_*, numbers of threads and the like), and those in `additional`. nullopt: all strings.
std::vector<std::string> SelectEnvironment(
    const char* const* environment, const std::optional<std::vector<std::string>>& additional);

// Returns InvalidArgument if one of `names` cannot be the name of a variable.
absl::Status CheckVariableNames(const std::vector<std::string>& names);

}  // namespace penstock::python_host
