// SPDX-License-Identifier: Apache-2.0
// ImageDirectory: image files in sub-directories. Each sub-directory is a class.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind ImageDirectoryKind();

}  // namespace penstock
