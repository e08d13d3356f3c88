// SPDX-License-Identifier: Apache-2.0
// Files at s3://bucket/key.
#pragma once

#include <memory>

#include "control/env/files.h"
#include "control/env/remote/remote_file.h"
#include "control/settings/settings.h"

namespace penstock::remote {

// `context` must outlive the returned object and its files. Credentials are looked up in
// `environment` and in the files that it names.
std::unique_ptr<Files> MakeS3Files(RemoteContext& context, Environment environment);

}  // namespace penstock::remote
