// SPDX-License-Identifier: Apache-2.0
// Files at http:// and https:// addresses.
#pragma once

#include <memory>

#include "control/env/files.h"
#include "control/env/remote/remote_file.h"
#include "control/env/remote/url_rules.h"

namespace penstock::remote {

// `context` must outlive the returned object and its files. `rules`: nullptr allows all names.
std::unique_ptr<Files> MakeHttpFiles(RemoteContext& context,
                                     std::shared_ptr<const UrlRules> rules = nullptr);

}  // namespace penstock::remote
