// SPDX-License-Identifier: Apache-2.0
// The plug-ins of one worker. No dataset can make the worker load another plug-in.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace penstock::worker {

// Loads the plug-ins in order. `allowed` lists libraries, and folders whose contents are all
// allowed; if `allowed` is empty, every library is allowed. Links are followed first. For a library
// that is not allowed, returns PermissionDenied without opening it. Other errors are those of
// LoadPlugin().
absl::Status LoadPlugins(const std::vector<std::string>& paths,
                         const std::vector<std::string>& allowed);

}  // namespace penstock::worker
