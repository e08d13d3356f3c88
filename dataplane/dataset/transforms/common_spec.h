// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/spec.h"

namespace penstock {

// Returns the spec that admits elements of `a` and of `b`. Dimensions that differ are unknown.
// InvalidArgument if structure, dtype or kind of a leaf differ: "`what` differ in x: … in the
// first, … in the second".
absl::StatusOr<Spec> CommonSpec(const Spec& a, const Spec& b, std::string_view what);

}  // namespace penstock
