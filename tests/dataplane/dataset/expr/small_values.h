// SPDX-License-Identifier: Apache-2.0
// For fuzzers that run functions: no value takes more than 4 MiB.
#pragma once

#include "dataplane/memory/element_limit.h"

namespace penstock {

inline const bool kValuesAreSmall = (LimitElementBytes(4 << 20), true);

}  // namespace penstock
