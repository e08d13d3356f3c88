// SPDX-License-Identifier: Apache-2.0
// Files at http:// and https:// addresses.
#pragma once

#include <memory>

#include "control/env/files.h"
#include "control/env/remote/remote_file.h"

namespace penstock::remote {

// `context` must outlive the returned object and its files.
std::unique_ptr<Files> MakeHttpFiles(RemoteContext& context);

}  // namespace penstock::remote
