// SPDX-License-Identifier: Apache-2.0
// Files of every kind, by the scheme of their names.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "control/env/files.h"
#include "control/settings/settings.h"
#include "penstock/files.h"

namespace penstock {

// LocalFiles(), and remote ones by `config`, with connections of its own. Files
// do not outlive it. InvalidArgument as Check(config).
absl::StatusOr<std::unique_ptr<Files>> MakeSchemeFiles(const FilesConfig& config,
                                                       Environment environment);

}  // namespace penstock
