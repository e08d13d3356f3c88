// SPDX-License-Identifier: Apache-2.0
// Included by fuzzers that run functions: no value takes more than 4 MiB.
#pragma once

#include "dataplane/dataset/expr/op_run.h"

namespace penstock {

inline const bool kValuesAreSmall = (LimitValueBytes(kMaxValueBytes >> 10), true);

}  // namespace penstock
