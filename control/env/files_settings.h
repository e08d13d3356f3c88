// SPDX-License-Identifier: Apache-2.0
// Reads the settings of remote files from the environment and from the section [files] of the
// settings file (control/settings).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock {

std::vector<Setting> SettingsOf(FilesConfig& config);

// Checks all settings. InvalidArgument, with the name of the setting, if one is not valid.
absl::Status Check(const FilesConfig& config);

// Returns the checked settings: the defaults, overridden by the environment or by [files] of the
// file `path`. If `path` is empty, the file is the one that PENSTOCK_CONFIG names, if set.
absl::StatusOr<FilesConfig> ReadFilesConfig(const std::string& path,
                                            const Environment& environment);

}  // namespace penstock
