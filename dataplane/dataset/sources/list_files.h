// SPDX-License-Identifier: Apache-2.0
// Dataset::ListFiles: names of files that match patterns.
#pragma once

#include "dataplane/dataset/registry.h"

namespace penstock {

NodeKind ListFilesKind();

}  // namespace penstock
