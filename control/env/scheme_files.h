// SPDX-License-Identifier: Apache-2.0
// Files of all kinds, chosen by the scheme in their names.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock {

// Returns a Files that contains LocalFiles() and remote files. `config` configures the remote
// files, which have their own connections. No file may outlive the returned object. Has the errors
// of Check(config).
absl::StatusOr<std::unique_ptr<Files>> MakeSchemeFiles(const FilesConfig& config,
                                                       Environment environment);

}  // namespace penstock
