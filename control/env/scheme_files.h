// SPDX-License-Identifier: Apache-2.0
// Files of every kind, by the scheme of their names.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock {

// Returns LocalFiles(), and remote files as configured by `config`, with their own connections. No
// file may outlive it. Has the errors of Check(config).
absl::StatusOr<std::unique_ptr<Files>> MakeSchemeFiles(const FilesConfig& config,
                                                       Environment environment);

}  // namespace penstock
