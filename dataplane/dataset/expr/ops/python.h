// SPDX-License-Identifier: Apache-2.0
// Functions that call Python.
#pragma once

#include <vector>

#include "dataplane/dataset/expr/op_registry.h"

namespace penstock {

inline constexpr char kPythonCall[] = "PythonCall";

std::vector<OpRow> PythonOps();

}  // namespace penstock
