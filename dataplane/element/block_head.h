// SPDX-License-Identifier: Apache-2.0
// A block whose body lies elsewhere, on a device: what can be told of it by its head.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "penstock/spec.h"

namespace penstock {

// As CheckBlock(), of a block whose head is all of `head` and whose body has `body_bytes`:
// nothing that is read by it lies outside. InvalidArgument also for a leaf of bools, whose
// values the host cannot look at.
absl::Status CheckBlockHead(absl::Span<const std::byte> head, size_t body_bytes, const Spec& spec);

// Whether elements of `spec` can be checked so.
bool HeadDescribesAll(const Spec& spec);

}  // namespace penstock
