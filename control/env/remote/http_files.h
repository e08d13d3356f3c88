// SPDX-License-Identifier: Apache-2.0
// Files by http:// and https://.
#pragma once

#include <memory>

#include "control/env/files.h"
#include "control/env/remote/remote_file.h"

namespace penstock::remote {

// `context` outlives it and its files.
std::unique_ptr<Files> MakeHttpFiles(RemoteContext& context);

}  // namespace penstock::remote
