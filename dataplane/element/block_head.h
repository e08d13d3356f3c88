// SPDX-License-Identifier: Apache-2.0
// Checks a block from its head alone, because its body is on a device.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/spec.h"

namespace penstock {

// The same as CheckBlock(), for a block with exactly the head `head` and a body of `body_bytes`: no
// read through the block goes out of bounds. Also returns InvalidArgument for a leaf of bools,
// because the host cannot read its values.
absl::Status CheckBlockHead(absl::Span<const std::byte> head, size_t body_bytes, const Spec& spec);

// True if CheckBlockHead() can check elements of `spec`.
bool HeadDescribesAll(const Spec& spec);

}  // namespace penstock
