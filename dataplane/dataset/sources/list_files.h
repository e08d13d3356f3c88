// SPDX-License-Identifier: Apache-2.0
// Dataset::ListFiles: the names of the files that match patterns.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind ListFilesKind();

}  // namespace penstock
