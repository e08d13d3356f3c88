// SPDX-License-Identifier: Apache-2.0
// Checks a block from its head alone, because its body is on a device.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/spec.h"

namespace penstock {

// Same as CheckBlock(), for a block that consists of exactly `head` and a body of `body_bytes`.
// Also returns InvalidArgument for a leaf of bools, because the host cannot read its values.
absl::Status CheckBlockHead(absl::Span<const std::byte> head, size_t body_bytes, const Spec& spec);

// Returns true if CheckBlockHead() can check elements of `spec`.
bool HeadDescribesAll(const Spec& spec);

}  // namespace penstock
