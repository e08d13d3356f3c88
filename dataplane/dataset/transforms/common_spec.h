// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "penstock/spec.h"

namespace penstock {

// The spec of what is either of `a` or of `b`: dimensions that differ are
// unknown. InvalidArgument for another structure, dtype or kind of a leaf:
// "`what` differ in x: … in the first, … in the second".
absl::StatusOr<Spec> CommonSpec(const Spec& a, const Spec& b, std::string_view what);

}  // namespace penstock
