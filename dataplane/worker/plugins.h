// SPDX-License-Identifier: Apache-2.0
// The plug-ins of one worker. No dataset makes it load another.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace penstock::worker {

// Loads them in order. `allowed` are libraries, and folders with all in them; one
// that lies elsewhere (links followed) is PermissionDenied and not opened. Empty: all
// may be. Else what LoadPlugin says.
absl::Status LoadPlugins(const std::vector<std::string>& paths,
                         const std::vector<std::string>& allowed);

}  // namespace penstock::worker
