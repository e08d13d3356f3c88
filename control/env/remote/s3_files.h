// SPDX-License-Identifier: Apache-2.0
// Files at s3://bucket/key.
#pragma once

#include <memory>

#include "control/env/files.h"
#include "control/env/remote/remote_file.h"
#include "control/env/remote/url_rules.h"
#include "control/settings/settings.h"

namespace penstock::remote {

// `context` must outlive the returned object and its files. Credentials are looked up in
// `environment` and in the files that it names. `rules`: nullptr allows all names.
std::unique_ptr<Files> MakeS3Files(RemoteContext& context, Environment environment,
                                   std::shared_ptr<const UrlRules> rules = nullptr);

}  // namespace penstock::remote
