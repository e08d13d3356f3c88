// SPDX-License-Identifier: Apache-2.0
// The settings of remote files in the environment and in [files] of the settings file
// (control/settings).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock {

std::vector<Setting> SettingsOf(FilesConfig& config);

// InvalidArgument names the setting that is not valid.
absl::Status Check(const FilesConfig& config);

// Returns the defaults, overridden by the environment or by [files] of the file `path` (empty: the
// file that PENSTOCK_CONFIG names, if set), and checked.
absl::StatusOr<FilesConfig> ReadFilesConfig(const std::string& path,
                                            const Environment& environment);

}  // namespace penstock
