// SPDX-License-Identifier: Apache-2.0
// What the environment and the settings file say of remote files: [files] of
// control/settings.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock {

std::vector<Setting> SettingsOf(FilesConfig& config);

// InvalidArgument names the setting that makes no sense.
absl::Status Check(const FilesConfig& config);

// Defaults, and what the environment or [files] of the file `path` (empty: that
// of PENSTOCK_CONFIG, if set) say instead; checked.
absl::StatusOr<FilesConfig> ReadFilesConfig(const std::string& path,
                                            const Environment& environment);

}  // namespace penstock
