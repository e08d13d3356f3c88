// SPDX-License-Identifier: Apache-2.0
// FromPythonGenerator(): what a generator of Python gives, in one split. A position in it is a
// count: the generator is begun anew, and so many elements are passed over.
#pragma once

#include "dataplane/dataset/registry.h"

namespace penstock {

NodeKind PythonGeneratorKind();

}  // namespace penstock
