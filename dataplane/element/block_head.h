// SPDX-License-Identifier: Apache-2.0
// Checks of a block whose body is elsewhere, on a device, from its head alone.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/spec.h"

namespace penstock {

// The same as CheckBlock(), for a block whose head is all of `head` and whose body has
// `body_bytes`: no read through the block goes out of bounds. Also returns InvalidArgument for a
// leaf of bools, because the host cannot read its values.
absl::Status CheckBlockHead(absl::Span<const std::byte> head, size_t body_bytes, const Spec& spec);

// True if CheckBlockHead() can check elements of `spec`.
bool HeadDescribesAll(const Spec& spec);

}  // namespace penstock
