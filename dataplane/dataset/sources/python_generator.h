// SPDX-License-Identifier: Apache-2.0
// FromPythonGenerator(): the elements of a Python generator, as one split. A position is a count of
// elements. To restore it, the generator is started again and this many elements are skipped.
#pragma once

#include "dataplane/dataset/graph/registry.h"

namespace penstock {

NodeKind PythonGeneratorKind();

}  // namespace penstock
